#include "kernels/tree/balanced_kmeans.h"

#include <memory>
#include <stdexcept>

#include "kernels/base/dense.h"
#include "kernels/base/raw_vector.h"
#include "kernels/tree/two_means.h"

namespace lt {

namespace {

// Members of a split: row ids[i] of a matrix, or row i where there are no ids.
struct SparseMembers {
  CsrView rows;
  const int32_t* ids = nullptr;
  decltype(SplitKernels::gather_dot) gather_dot = LT_DISPATCH(split_kernels).gather_dot;

  int64_t row(int64_t i) const { return ids ? ids[i] : i; }
  int64_t n_features() const { return rows.n_cols; }
  float dot(const float* dense, int64_t i) const {
    const int64_t begin = rows.begin(row(i));
    return gather_dot(dense, rows.indices + begin, rows.values + begin, rows.end(row(i)) - begin);
  }
  void prefetch(int64_t i) const { prefetch_row(rows, row(i)); }
  template <class T>
  void add(int64_t i, float scale, T* sum) const {
    for (int64_t t = rows.begin(row(i)); t < rows.end(row(i)); ++t)
      sum[rows.indices[t]] += static_cast<T>(scale * rows.values[t]);
  }
  void mark(int64_t i, uint8_t* marks) const {
    for (int64_t t = rows.begin(row(i)); t < rows.end(row(i)); ++t) marks[rows.indices[t] >> PartialSum::kShift] = 1;
  }
};

struct DenseMembers {
  MatrixView<const float> rows;
  const int32_t* ids = nullptr;
  decltype(DenseKernels::dot) dense_dot = LT_DISPATCH(dense).dot;

  int64_t n_features() const { return rows.n_cols; }
  float dot(const float* dense, int64_t i) const { return dense_dot(dense, rows.row(ids[i]), rows.n_cols); }
  void prefetch(int64_t) const {}  // long enough to be foreseen
  template <class T>
  void add(int64_t i, float scale, T* sum) const {
    const float* row = rows.row(ids[i]);
    for (int64_t j = 0; j < rows.n_cols; ++j) sum[j] += static_cast<T>(scale * row[j]);
  }
  void mark(int64_t, uint8_t* marks) const { std::fill(marks, marks + (rows.n_cols >> PartialSum::kShift) + 1, 1); }
};

// A copy of the members' rows with features renamed in order of first use: frequent ones come early, which keeps the
// part of a dense vector that is read most in the nearest cache.
class RenamedRows {
 public:
  explicit RenamedRows(int64_t n_features) : name_(n_features, -1) {}

  CsrView rename(const CsrView& rows, const int32_t* ids, int64_t n, int64_t n_entries) {
    indptr_.resize(n + 1);
    indices_.resize(n_entries);
    values_.resize(n_entries);
    int64_t next = 0;
    for (int64_t i = 0; i < n; ++i) {
      indptr_[i] = next;
      for (int64_t t = rows.begin(ids[i]); t < rows.end(ids[i]); ++t, ++next) {
        int32_t& name = name_[rows.indices[t]];
        if (name < 0) {
          name = static_cast<int32_t>(used_.size());
          used_.push_back(rows.indices[t]);
        }
        indices_[next] = name;
        values_[next] = rows.values[t];
      }
    }
    indptr_[n] = next;
    const int64_t n_used = static_cast<int64_t>(used_.size());
    for (const int32_t feature : used_) name_[feature] = -1;
    used_.clear();
    return {n, n_used, indptr_.data(), indices_.data(), values_.data()};
  }

 private:
  std::vector<int32_t> name_, used_;
  std::vector<int64_t> indptr_;
  RawVector<int32_t> indices_;
  RawVector<float> values_;
};

// Where members come from: as they are for large splits, through a worker's own copy for small ones.
struct SparseSource {
  using Members = SparseMembers;
  using Copy = RenamedRows;
  CsrView rows;

  int64_t n_rows() const { return rows.n_rows; }
  int64_t n_features() const { return rows.n_cols; }
  const float* row(int64_t i) const { return rows.values + rows.begin(i); }
  int64_t row_size(int64_t i) const { return rows.row_nnz(i); }
  Members direct(const int32_t* ids) const { return {rows, ids}; }
  Members local(const int32_t* ids, int64_t n, int64_t n_entries, Copy& copy) const {
    return {copy.rename(rows, ids, n, n_entries)};
  }
};

struct DenseSource {
  using Members = DenseMembers;
  struct Copy {
    explicit Copy(int64_t) {}
  };
  MatrixView<const float> rows;

  int64_t n_rows() const { return rows.n_rows; }
  int64_t n_features() const { return rows.n_cols; }
  const float* row(int64_t i) const { return rows.row(i); }
  int64_t row_size(int64_t) const { return rows.n_cols; }
  Members direct(const int32_t* ids) const { return {rows, ids}; }
  Members local(const int32_t* ids, int64_t, int64_t, Copy&) const { return {rows, ids}; }
};

constexpr float kLongest = 1e15f;  // scores of longer rows could overflow

struct Extent {
  float largest = 0;  // absolute value
  float longest = 0;  // Euclidean length of a row
};

template <class Source>
Extent measure(const Source& source, Team& team, const Poll& poll) {
  constexpr int64_t kRows = 4096;
  std::vector<Extent> blocks((source.n_rows() + kRows - 1) / kRows);
  team.run_blocks(
      source.n_rows(), kRows,
      [&](int64_t begin, int64_t end, int) {
        Extent& block = blocks[begin / kRows];
        for (int64_t i = begin; i < end; ++i) {
          double squares = 0;
          for (int64_t t = 0; t < source.row_size(i); ++t) {
            const float value = source.row(i)[t];
            squares += static_cast<double>(value) * value;
            block.largest = std::max(block.largest, std::abs(value));
          }
          const float length = static_cast<float>(std::sqrt(squares));
          block.longest = length >= 0 ? std::max(block.longest, length) : INFINITY;  // NaN is no length
        }
      },
      poll);
  Extent all;
  for (const Extent& block : blocks) {
    all.largest = std::max(all.largest, block.largest);
    all.longest = std::max(all.longest, block.longest);
  }
  return all;
}

// The power of two by which values are multiplied before they become integers: n_rows of the largest one stay < 2^62.
float fixed_point_unit(float largest, int64_t n_rows) {
  const int value_bits = largest > 0 ? std::ilogb(largest) + 1 : 0;
  const int row_bits = std::bit_width(static_cast<uint64_t>(n_rows));
  return std::ldexp(1.0f, std::min(62 - row_bits - value_bits, 120));
}

// What lies before the cut comes first; both sides keep their order.
void partition_by_side(const Split& split, const std::vector<int8_t>& left, std::vector<int32_t>& copy,
                       int32_t* order) {
  copy.assign(order + split.begin, order + split.end);
  int64_t next_left = split.begin, next_right = split.cut;
  for (size_t i = 0; i < copy.size(); ++i) order[left[i] ? next_left++ : next_right++] = copy[i];
}

template <class Source>
bool run_rounds(const Source& source, const Split* splits, const int64_t* round_ptr, int64_t n_rounds,
                const SplitParams& params, int n_threads, int32_t* order, const Poll& poll) {
  n_threads = std::max(n_threads, 1);
  std::atomic<int64_t> done{0};
  int64_t total = 0;
  for (int64_t i = round_ptr[0]; i < round_ptr[n_rounds]; ++i) total += splits[i].end - splits[i].begin;
  const Poll watch = poll ? Poll([&](int64_t, int64_t) { return poll(done.load(), total); }) : Poll();
  Team team(n_threads);
  const Extent extent = measure(source, team, watch);
  if (extent.longest > kLongest)
    throw std::invalid_argument("rows are too long to cluster, or hold NaN: scale them to unit length");
  const float unit = fixed_point_unit(extent.largest, source.n_rows());

  const auto run_split = [&](const Split& split, const auto& members, TwoMeansScratch& scratch, const Loop& loop,
                             int n_workers) {
    const TwoMeansParams two{split.end - split.begin, split.cut - split.begin, unit,
                             extent.longest,          params.spherical,        params.max_iter};
    TwoMeans two_means(members, two, scratch, loop, n_workers);
    if (!two_means.run(RandomStream(params.seed, split.begin, split.end))) return false;
    partition_by_side(split, scratch.left, scratch.chosen, order);
    done += two.n;
    return true;
  };

  const Loop here = [&](int64_t n, int64_t grain, const auto& body) {
    for (int64_t begin = 0; begin < n; begin += grain) body(begin, std::min(n, begin + grain), 0);
    return !team.stop().asked();
  };

  struct Worker {
    TwoMeansScratch scratch;
    typename Source::Copy copy;
  };
  std::vector<std::unique_ptr<Worker>> workers(n_threads);
  const auto run_one = [&](const Split& split, int worker, const Loop& loop, int n_workers) {
    int64_t n_entries = 0;
    for (int64_t i = split.begin; i < split.end; ++i) n_entries += source.row_size(order[i]);
    const int32_t* ids = order + split.begin;
    if (!workers[worker]) workers[worker].reset(new Worker{{}, typename Source::Copy(source.n_features())});
    Worker& mine = *workers[worker];
    return n_entries < params.large ? run_split(split, source.local(ids, split.end - split.begin, n_entries, mine.copy),
                                                mine.scratch, loop, n_workers)
                                    : run_split(split, source.direct(ids), mine.scratch, loop, n_workers);
  };

  // Splits of a round run side by side and share the threads; who works on a split makes no difference to the result.
  for (int64_t round = 0; round < n_rounds; ++round) {
    const Split* first = splits + round_ptr[round];
    const int64_t n_splits = round_ptr[round + 1] - round_ptr[round];
    const int share = std::max(1, static_cast<int>(n_threads / std::max<int64_t>(n_splits, 1)));
    const auto run_shared = [&](int64_t task, int worker) {
      Team own(share);
      const Loop together = [&](int64_t n, int64_t grain, const auto& body) {
        own.run_blocks(n, grain, body);
        return !team.stop().asked();
      };
      run_one(first[task], worker, share > 1 ? together : here, share);
    };
    if (!team.run(n_splits, run_shared, watch, true)) return false;
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
