#include "kernels/decide/linear_decision.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <numeric>
#include <vector>

#include "kernels/decide/best_gains.h"

namespace lt {

namespace {

// For every rule, the labels that gain most with eta = 0, best first: as many as a row can exclude, plus k.
std::vector<std::vector<Gain>> fillers(const CsrView& eta, const LinearRules& rules) {
  int64_t longest = 0;
  for (int64_t i = 0; i < eta.n_rows; ++i) longest = std::max(longest, eta.row_nnz(i));
  std::vector<std::vector<Gain>> out(rules.n_rules);
  std::vector<Gain> all;
  for (int64_t r = 0; r < rules.n_rules; ++r) {
    all.clear();
    for (int64_t j = 0; j < eta.n_cols; ++j)
      if (!rules.allowed || rules.allowed[j])
        all.push_back({rules.b[r * eta.n_cols + j], static_cast<int32_t>(j), 0.0f});
    const auto keep = std::min<int64_t>(static_cast<int64_t>(all.size()), rules.k + longest);
    std::partial_sort(all.begin(), all.begin() + keep, all.end(), gains_more);
    out[r].assign(all.begin(), all.begin() + keep);
  }
  return out;
}

// The value of a label in a sorted row; short rows are scanned, which costs less than the mispredictions of a search.
float truth_of(const CsrView& truth, int64_t row, int32_t label) {
  const int64_t begin = truth.begin(row), end = truth.end(row);
  if (end - begin <= 32) {
    for (int64_t p = begin; p < end; ++p)
      if (truth.indices[p] >= label) return truth.indices[p] == label ? truth.values[p] : 0.0f;
    return 0.0f;
  }
  const int32_t* found = std::lower_bound(truth.indices + begin, truth.indices + end, label);
  return found != truth.indices + end && *found == label ? truth.values[found - truth.indices] : 0.0f;
}

// Which labels a row has as candidates. Few questions are asked, so short rows are not sorted: a filter of 1,024 bits
// answers most of them, and a scan the rest.
class OwnLabels {
 public:
  void set(const int32_t* ids, int64_t count) {
    ids_ = ids;
    count_ = count;
    sorted_.clear();
    if (count > 256) {
      sorted_.assign(ids, ids + count);
      std::sort(sorted_.begin(), sorted_.end());
      return;
    }
    std::fill(std::begin(bits_), std::end(bits_), 0);
    for (int64_t p = 0; p < count; ++p) bits_[slot(ids[p]) / 64] |= uint64_t{1} << (slot(ids[p]) % 64);
  }
  bool has(int32_t label) const {
    if (!sorted_.empty()) return std::binary_search(sorted_.begin(), sorted_.end(), label);
    if (!(bits_[slot(label) / 64] >> (slot(label) % 64) & 1)) return false;
    bool found = false;
    for (int64_t p = 0; p < count_; ++p) found |= ids_[p] == label;
    return found;
  }

 private:
  static uint32_t slot(int32_t label) { return (static_cast<uint32_t>(label) * 0x9E3779B1u) >> 22; }

  const int32_t* ids_ = nullptr;
  int64_t count_ = 0;
  uint64_t bits_[16] = {};
  std::vector<int32_t> sorted_;
};

struct Slope {
  double a, b;
};

// Offers the candidates of a row. The k-th largest of the maxima of blocks of eight is a floor under the k-th best
// gain; the few candidates above it are gathered without a branch, which no processor could predict.
class RowOffers {
 public:
  void offer(const CsrView& eta, int64_t row, const double* gains, bool exactly, BestGains& best, int64_t k) {
    const int64_t begin = eta.begin(row), count = eta.row_nnz(row), n_blocks = count / kBlock;
    double floor = exactly ? -BestGains::kInfinity : std::numeric_limits<double>::denorm_min();
    if (n_blocks > k && n_blocks <= kMost) {
      double maxima[kMost];
      for (int64_t b = 0; b < n_blocks; ++b) {
        const double* block = gains + b * kBlock;
        double most = block[0];
        for (int i = 1; i < kBlock; ++i) most = block[i] > most ? block[i] : most;
        maxima[b] = most;
      }
      floor = std::max(floor, kth_largest(maxima, n_blocks, k));
    }
    above_.resize(static_cast<size_t>(count));
    int64_t n = 0;
    for (int64_t p = 0; p < count; ++p) {
      above_[n] = static_cast<int32_t>(p);
      n += gains[p] >= floor;
    }
    for (int64_t i = 0; i < n; ++i) {
      const int64_t p = above_[i];
      best.offer({gains[p], eta.indices[begin + p], eta.values[begin + p]});
    }
  }

 private:
  static constexpr int64_t kBlock = 8, kMost = 64;

  // The value that fewer than k others exceed, and k or more reach.
  static double kth_largest(const double* values, int64_t n, int64_t k) {
    double found = -BestGains::kInfinity;
    for (int64_t i = 0; i < n; ++i) {
      int64_t reached = 0;
      for (int64_t j = 0; j < n; ++j) reached += values[j] >= values[i];
      found = reached >= k && values[i] > found ? values[i] : found;
    }
    return found;
  }

  std::vector<int32_t> above_;
};

bool more_probable(const Gain& a, const Gain& b) { return a.eta > b.eta || (a.eta == b.eta && a.id < b.id); }

}  // namespace

bool linear_decision(const CsrView& eta, const LinearRules& rules, const CsrView* truth, int n_threads,
                     const DecisionOut& out, const Poll& poll) {
  const int64_t k = rules.k;
  const bool fill = rules.exactly && !rules.candidates_only;
  const auto absent = fill ? fillers(eta, rules) : std::vector<std::vector<Gain>>(rules.n_rules);
  std::vector<Slope> slopes;  // a rule alone has its a and b side by side: one cache line a candidate
  if (rules.n_rules == 1) {
    slopes.resize(static_cast<size_t>(eta.n_cols));
    for (int64_t j = 0; j < eta.n_cols; ++j) slopes[j] = {rules.a[j], rules.b[j]};
  }
  auto block = [&](int64_t begin, int64_t end, int) {
    BestGains best(k);
    OwnLabels own;
    RowOffers offers;
    std::vector<double> gains;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t rule = rules.rule_of ? rules.rule_of[i] : 0;
      const double* a = rules.a + rule * eta.n_cols;
      const double* b = rules.b + rule * eta.n_cols;
      best.clear();
      const int32_t* ids = eta.indices + eta.begin(i);
      const float* values = eta.values + eta.begin(i);
      const int64_t count = eta.row_nnz(i);
      gains.resize(static_cast<size_t>(count));
      if (!slopes.empty())
        for (int64_t p = 0; p < count; ++p)
          gains[p] = slopes[ids[p]].a * static_cast<double>(values[p]) + slopes[ids[p]].b;
      else
        for (int64_t p = 0; p < count; ++p) gains[p] = a[ids[p]] * static_cast<double>(values[p]) + b[ids[p]];
      offers.offer(eta, i, gains.data(), rules.exactly, best, k);
      best.finish();
      auto& items = best.items();
      if (fill && !absent[rule].empty() && (!best.full() || gains_more(absent[rule].front(), items.back()))) {
        own.set(ids, count);
        for (const Gain& filler : absent[rule]) {
          if (best.full() && !gains_more(filler, items.back())) break;  // nor do those after it
          if (own.has(filler.id)) continue;
          if (!best.insert(filler)) break;
        }
      }
      if (rules.by_probability) std::sort(items.begin(), items.end(), more_probable);
      for (int64_t s = 0; s < k; ++s) {
        const bool named = s < static_cast<int64_t>(items.size());
        const int64_t at = i * k + s;
        out.ids[at] = named ? items[s].id : -1;
        if (out.scores)
          out.scores[at] = !named                 ? -std::numeric_limits<float>::infinity()
                           : rules.by_probability ? items[s].eta
                                                  : static_cast<float>(items[s].gain);
        if (out.hits) out.hits[at] = named && truth ? truth_of(*truth, i, items[s].id) : 0.0f;
      }
    }
  };
  constexpr int64_t kRowsPerTask = 512;
  return parallel_blocks(eta.n_rows, kRowsPerTask, n_threads, block, poll);
}

bool linear_counts(const CsrView& eta, const LinearRules& rules, const CsrView& truth, int n_threads, double* t,
                   double* q, const Poll& poll) {
  const size_t size = static_cast<size_t>(eta.n_rows * rules.k);
  std::vector<int32_t> ids(size);
  std::vector<float> hits(size);
  if (!linear_decision(eta, rules, &truth, n_threads, {ids.data(), nullptr, hits.data()}, poll)) return false;
  for (size_t at = 0; at < size; ++at) {
    if (ids[at] < 0) continue;
    q[ids[at]] += 1.0;
    t[ids[at]] += static_cast<double>(hits[at]);
  }
  return true;
}

}  // namespace lt
