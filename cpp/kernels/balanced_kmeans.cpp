#include "kernels/balanced_kmeans.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/counter_random.h"
#include "kernels/dense.h"

namespace lt {

namespace {

constexpr int64_t kRowGrain = 512;       // rows a thread scores at a time
constexpr int64_t kFeatureGrain = 8192;  // features whose norms are summed as one term

// Members of a split: row ids[i] of a matrix, or row i where there are no ids.
struct SparseMembers {
  CsrView rows;
  const int32_t* ids = nullptr;
  float (*gather_dot)(const float*, const int32_t*, const float*, int64_t) = LT_DISPATCH(gather).dot;

  int64_t row(int64_t i) const { return ids ? ids[i] : i; }
  int64_t n_features() const { return rows.n_cols; }
  float dot(const float* dense, int64_t i) const {
    const int64_t begin = rows.begin(row(i));
    return gather_dot(dense, rows.indices + begin, rows.values + begin, rows.end(row(i)) - begin);
  }
  template <class T>
  void add(int64_t i, float scale, T* sum) const {
    for (int64_t t = rows.begin(row(i)); t < rows.end(row(i)); ++t)
      sum[rows.indices[t]] += static_cast<T>(scale * rows.values[t]);
  }
};

struct DenseMembers {
  MatrixView<const float> rows;
  const int32_t* ids = nullptr;
  float (*dense_dot)(const float*, const float*, int64_t) = LT_DISPATCH(dense).dot;

  int64_t n_features() const { return rows.n_cols; }
  float dot(const float* dense, int64_t i) const { return dense_dot(dense, rows.row(ids[i]), rows.n_cols); }
  template <class T>
  void add(int64_t i, float scale, T* sum) const {
    const float* row = rows.row(ids[i]);
    for (int64_t j = 0; j < rows.n_cols; ++j) sum[j] += static_cast<T>(scale * row[j]);
  }
};

// body(begin, end, worker) over blocks of [0, n); false if the run was stopped.
using Loop = std::function<bool(int64_t n, int64_t grain, const std::function<void(int64_t, int64_t, int)>& body)>;

bool run_here(int64_t n, int64_t grain, const std::function<void(int64_t, int64_t, int)>& body) {
  for (int64_t begin = 0; begin < n; begin += grain) body(begin, std::min(n, begin + grain), 0);
  return true;
}

// Scores as integers in the same order, with the position as the tie rule: keys are distinct, so a cut is a set.
uint64_t sort_key(float score, int64_t position) {
  const uint32_t bits = std::bit_cast<uint32_t>(score + 0.0f);  // -0 becomes +0
  const uint32_t ordered = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
  return uint64_t{ordered} << 32 | static_cast<uint32_t>(position);
}

struct Scratch {
  std::vector<uint64_t> keys, sorted;        // (members)
  std::vector<int8_t> left, change;          // (members): on the left now; +1 came, -1 went
  std::vector<float> direction;              // (features) c_right - c_left
  std::vector<int64_t> left_sum, total_sum;  // (features) in fixed point
  std::vector<std::vector<int64_t>> extra;   // (workers - 1, features) what other workers add to a sum
  std::vector<double> norms;                 // (feature blocks, 2) squares of left and right
  std::vector<int32_t> moved;                // (members)
};

template <class Members>
class TwoMeans {
 public:
  TwoMeans(const Members& members, int64_t n, int64_t n_left, float unit, bool spherical, Scratch& scratch,
           const Loop& loop, int n_workers)
      : members_(members), n_(n), n_left_(n_left), unit_(unit), spherical_(spherical), s_(scratch), loop_(loop) {
    const int64_t d = members.n_features();
    s_.keys.resize(n);
    s_.left.assign(n, 0);
    s_.change.assign(n, 0);
    s_.direction.assign(d, 0.0f);
    s_.left_sum.assign(d, 0);
    s_.total_sum.assign(d, 0);
    s_.extra.resize(n_workers - 1);
    for (auto& sum : s_.extra) sum.assign(d, 0);
    s_.norms.assign(2 * ((d + kFeatureGrain - 1) / kFeatureGrain), 0.0);
  }

  // Leaves the assignment in scratch.left; false if stopped.
  bool run(RandomStream random, int max_iter) {
    const uint32_t a = random.below(static_cast<uint32_t>(n_));
    const uint32_t other = random.below(static_cast<uint32_t>(n_ - 1));
    members_.add(other + (other >= a), 1.0f, s_.direction.data());
    members_.add(a, -1.0f, s_.direction.data());
    for (int iteration = 0;; ++iteration) {
      if (!score()) return false;
      const bool changed = assign();
      if ((iteration > 0 && !changed) || iteration + 1 == max_iter) return true;
      if (!add_changes(s_.left_sum)) return false;
      if (iteration == 0) {
        for (int64_t i = 0; i < n_; ++i) s_.change[i] = 1;
        if (!add_changes(s_.total_sum)) return false;
      }
      if (!update_direction()) return false;
    }
  }

 private:
  bool score() {
    return loop_(n_, kRowGrain, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) s_.keys[i] = sort_key(members_.dot(s_.direction.data(), i), i);
    });
  }

  bool assign() {
    s_.sorted = s_.keys;
    std::nth_element(s_.sorted.begin(), s_.sorted.begin() + n_left_, s_.sorted.end());
    const uint64_t cut = s_.sorted[n_left_];
    int any = 0;
    for (int64_t i = 0; i < n_; ++i) {
      const int8_t now = s_.keys[i] < cut;
      s_.change[i] = static_cast<int8_t>(now - s_.left[i]);
      s_.left[i] = now;
      any |= s_.change[i];
    }
    return any != 0;
  }

  // sum += rows that came, -= rows that went. Worker 0 adds to the sum itself, the others to their own, merged after.
  bool add_changes(std::vector<int64_t>& sum) {
    s_.moved.clear();
    for (int64_t i = 0; i < n_; ++i)
      if (s_.change[i]) s_.moved.push_back(static_cast<int32_t>(i));
    const auto add = [&](int64_t begin, int64_t end, int worker) {
      int64_t* target = worker == 0 ? sum.data() : s_.extra[worker - 1].data();
      for (int64_t j = begin; j < end; ++j)
        members_.add(s_.moved[j], static_cast<float>(s_.change[s_.moved[j]]) * unit_, target);
    };
    if (!loop_(static_cast<int64_t>(s_.moved.size()), kRowGrain, add)) return false;
    return s_.extra.empty() || loop_(members_.n_features(), kFeatureGrain, [&](int64_t begin, int64_t end, int) {
             for (auto& part : s_.extra)
               for (int64_t f = begin; f < end; ++f) sum[f] += std::exchange(part[f], 0);
           });
  }

  bool update_direction() {
    const int64_t d = members_.n_features();
    double left_scale = 1.0 / static_cast<double>(n_left_), right_scale = 1.0 / static_cast<double>(n_ - n_left_);
    if (spherical_) {
      const auto squares = [&](int64_t begin, int64_t end, int) {
        double left = 0, right = 0;
        for (int64_t f = begin; f < end; ++f) {
          const double l = static_cast<double>(s_.left_sum[f]), r = static_cast<double>(s_.total_sum[f]) - l;
          left += l * l;
          right += r * r;
        }
        s_.norms[2 * (begin / kFeatureGrain)] = left;
        s_.norms[2 * (begin / kFeatureGrain) + 1] = right;
      };
      if (!loop_(d, kFeatureGrain, squares)) return false;
      double left = 0, right = 0;
      for (size_t block = 0; block < s_.norms.size(); block += 2) {
        left += s_.norms[block];
        right += s_.norms[block + 1];
      }
      left_scale = left > 0 ? 1 / std::sqrt(left) : 0;
      right_scale = right > 0 ? 1 / std::sqrt(right) : 0;
    } else {
      left_scale /= unit_;
      right_scale /= unit_;
    }
    return loop_(d, kFeatureGrain, [&](int64_t begin, int64_t end, int) {
      for (int64_t f = begin; f < end; ++f) {
        const double l = static_cast<double>(s_.left_sum[f]), r = static_cast<double>(s_.total_sum[f]) - l;
        s_.direction[f] = static_cast<float>(r * right_scale - l * left_scale);
      }
    });
  }

  const Members& members_;
  const int64_t n_, n_left_;
  const float unit_;
  const bool spherical_;
  Scratch& s_;
  const Loop& loop_;
};

// What lies before the cut comes first; both sides keep their order.
void partition_by_side(const Split& split, const std::vector<int8_t>& left, std::vector<int32_t>& copy,
                       int32_t* order) {
  copy.assign(order + split.begin, order + split.end);
  int64_t next_left = split.begin, next_right = split.cut;
  for (size_t i = 0; i < copy.size(); ++i) order[left[i] ? next_left++ : next_right++] = copy[i];
}

// A copy of the members' rows with features renamed in order of first use.
class Renamed {
 public:
  explicit Renamed(int64_t n_features) : name_(n_features, -1) {}

  CsrView rename(const CsrView& rows, const int32_t* ids, int64_t n) {
    indptr_.assign(1, 0);
    indices_.clear();
    values_.clear();
    for (int64_t i = 0; i < n; ++i) {
      const int64_t begin = rows.begin(ids[i]), end = rows.end(ids[i]);
      for (int64_t t = begin; t < end; ++t) {
        int32_t& name = name_[rows.indices[t]];
        if (name < 0) {
          name = static_cast<int32_t>(used_.size());
          used_.push_back(rows.indices[t]);
        }
        indices_.push_back(name);
      }
      values_.insert(values_.end(), rows.values + begin, rows.values + end);
      indptr_.push_back(static_cast<int64_t>(indices_.size()));
    }
    const int64_t n_used = static_cast<int64_t>(used_.size());
    for (const int32_t feature : used_) name_[feature] = -1;
    used_.clear();
    return {n, n_used, indptr_.data(), indices_.data(), values_.data()};
  }

 private:
  std::vector<int32_t> name_, used_;
  std::vector<int64_t> indptr_;
  std::vector<int32_t> indices_;
  std::vector<float> values_;
};

struct SparseSource {
  using Members = SparseMembers;
  struct Local {
    explicit Local(const CsrView& rows) : renamed(rows.n_cols) {}
    Renamed renamed;
  };
  CsrView rows;

  int64_t n_rows() const { return rows.n_rows; }
  const float* values() const { return rows.values; }
  int64_t n_values() const { return rows.nnz(); }
  int64_t entries(const int32_t* ids, int64_t n) const {
    int64_t total = 0;
    for (int64_t i = 0; i < n; ++i) total += rows.row_nnz(ids[i]);
    return total;
  }
  Members direct(const int32_t* ids) const { return {rows, ids}; }
  Members local(const int32_t* ids, int64_t n, Local& scratch) const { return {scratch.renamed.rename(rows, ids, n)}; }
};

struct DenseSource {
  using Members = DenseMembers;
  struct Local {
    explicit Local(const MatrixView<const float>&) {}
  };
  MatrixView<const float> rows;

  int64_t n_rows() const { return rows.n_rows; }
  const float* values() const { return rows.data; }
  int64_t n_values() const { return rows.n_rows * rows.n_cols; }
  int64_t entries(const int32_t*, int64_t n) const { return n * rows.n_cols; }
  Members direct(const int32_t* ids) const { return {rows, ids}; }
  Members local(const int32_t* ids, int64_t, Local&) const { return {rows, ids}; }
};

// The power of two by which values are multiplied before they become integers: n_rows of the largest one stay < 2^62.
float fixed_point_unit(const float* values, int64_t n_values, int64_t n_rows) {
  float largest = 0;
  for (int64_t i = 0; i < n_values; ++i) largest = std::max(largest, std::abs(values[i]));
  const int value_bits = largest > 0 ? std::ilogb(largest) + 1 : 0;
  const int row_bits = std::bit_width(static_cast<uint64_t>(n_rows));
  return std::ldexp(1.0f, std::min(62 - row_bits - value_bits, 120));
}

template <class Source>
bool run_rounds(const Source& source, const Split* splits, const int64_t* round_ptr, int64_t n_rounds,
                const SplitParams& params, int n_threads, int32_t* order, const Poll& poll) {
  n_threads = std::max(n_threads, 1);
  const float unit = fixed_point_unit(source.values(), source.n_values(), source.n_rows());
  std::atomic<int64_t> done{0};
  int64_t total = 0;
  for (int64_t i = round_ptr[0]; i < round_ptr[n_rounds]; ++i) total += splits[i].end - splits[i].begin;
  const Poll watch = poll ? Poll([&](int64_t, int64_t) { return poll(done.load(), total); }) : Poll();
  const Loop over_threads = [&](int64_t n, int64_t grain, const std::function<void(int64_t, int64_t, int)>& body) {
    return parallel_blocks(n, grain, n_threads, body, watch);
  };
  const Loop here = run_here;

  const auto split_rows = [&](const Split& split, const auto& members, Scratch& scratch, const Loop& loop,
                              int n_workers) {
    TwoMeans two_means(members, split.end - split.begin, split.cut - split.begin, unit, params.spherical, scratch, loop,
                       n_workers);
    if (!two_means.run(RandomStream(params.seed, split.begin, split.end), params.max_iter)) return false;
    partition_by_side(split, scratch.left, scratch.moved, order);
    done += split.end - split.begin;
    return true;
  };

  struct Worker {
    Scratch scratch;
    typename Source::Local local;
  };
  std::vector<std::unique_ptr<Worker>> workers(n_threads);
  auto wide = std::make_unique<Scratch>();
  std::vector<const Split*> small;
  for (int64_t round = 0; round < n_rounds; ++round) {
    small.clear();
    for (const Split* split = splits + round_ptr[round]; split != splits + round_ptr[round + 1]; ++split) {
      const int32_t* ids = order + split->begin;
      if (source.entries(ids, split->end - split->begin) < params.large)
        small.push_back(split);
      else if (!split_rows(*split, source.direct(ids), *wide, over_threads, n_threads))
        return false;
    }
    if (round + 1 == n_rounds || !small.empty()) wide = std::make_unique<Scratch>();  // large ones come first: let go
    const auto split_small = [&](int64_t task, int worker) {
      auto& mine = workers[worker];
      if (!mine) mine.reset(new Worker{{}, typename Source::Local(source.rows)});
      const Split& split = *small[task];
      const auto members = source.local(order + split.begin, split.end - split.begin, mine->local);
      split_rows(split, members, mine->scratch, here, 1);
    };
    if (!parallel_for(static_cast<int64_t>(small.size()), n_threads, split_small, watch)) return false;
  }
  return true;
}

}  // namespace

bool balanced_splits(const CsrView& rows, const Split* splits, const int64_t* round_ptr, int64_t n_rounds,
                     const SplitParams& params, int n_threads, int32_t* order, const Poll& poll) {
  return run_rounds(SparseSource{rows}, splits, round_ptr, n_rounds, params, n_threads, order, poll);
}

bool balanced_splits(const MatrixView<const float>& rows, const Split* splits, const int64_t* round_ptr,
                     int64_t n_rounds, const SplitParams& params, int n_threads, int32_t* order, const Poll& poll) {
  return run_rounds(DenseSource{rows}, splits, round_ptr, n_rounds, params, n_threads, order, poll);
}

}  // namespace lt
