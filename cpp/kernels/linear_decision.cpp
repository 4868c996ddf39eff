#include "kernels/linear_decision.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include "kernels/best_gains.h"

namespace lt {

namespace {

constexpr int64_t kRowsPerTask = 512;

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

float truth_of(const CsrView& truth, int64_t row, int32_t label) {
  const int32_t* begin = truth.indices + truth.begin(row);
  const int32_t* end = truth.indices + truth.end(row);
  const int32_t* found = std::lower_bound(begin, end, label);
  return found != end && *found == label ? truth.values[found - truth.indices] : 0.0f;
}

bool more_probable(const Gain& a, const Gain& b) { return a.eta > b.eta || (a.eta == b.eta && a.id < b.id); }

}  // namespace

bool linear_decision(const CsrView& eta, const LinearRules& rules, const CsrView* truth, int n_threads,
                     const DecisionOut& out, const Poll& poll) {
  const int64_t k = rules.k;
  const bool fill = rules.exactly && !rules.candidates_only;
  const auto absent = fill ? fillers(eta, rules) : std::vector<std::vector<Gain>>(rules.n_rules);
  auto block = [&](int64_t begin, int64_t end, int) {
    BestGains best(k);
    std::vector<int32_t> own;  // the row's candidates, sorted
    for (int64_t i = begin; i < end; ++i) {
      const int64_t rule = rules.rule_of ? rules.rule_of[i] : 0;
      const double* a = rules.a + rule * eta.n_cols;
      const double* b = rules.b + rule * eta.n_cols;
      best.clear();
      for (int64_t p = eta.begin(i); p < eta.end(i); ++p) {
        const int32_t j = eta.indices[p];
        const double gain = a[j] * static_cast<double>(eta.values[p]) + b[j];
        if (rules.exactly || gain > 0.0) best.offer({gain, j, eta.values[p]});
      }
      best.finish();
      auto& items = best.items();
      if (fill && !absent[rule].empty() && (!best.full() || gains_more(absent[rule].front(), items.back()))) {
        own.assign(eta.indices + eta.begin(i), eta.indices + eta.end(i));
        std::sort(own.begin(), own.end());
        for (const Gain& filler : absent[rule]) {
          if (std::binary_search(own.begin(), own.end(), filler.id)) continue;
          if (!best.insert(filler)) break;
        }
      }
      if (rules.by_probability) std::sort(items.begin(), items.end(), more_probable);
      for (int64_t s = 0; s < k; ++s) {
        const bool named = s < static_cast<int64_t>(items.size());
        const int64_t at = i * k + s;
        out.ids[at] = named ? items[s].id : -1;
        out.scores[at] = !named                 ? -std::numeric_limits<float>::infinity()
                         : rules.by_probability ? items[s].eta
                                                : static_cast<float>(items[s].gain);
        if (out.hits) out.hits[at] = named && truth ? truth_of(*truth, i, items[s].id) : 0.0f;
      }
    }
  };
  return parallel_blocks(eta.n_rows, kRowsPerTask, n_threads, block, poll);
}

}  // namespace lt
