#include "kernels/linear/pruning.h"

#include <algorithm>
#include <cmath>

namespace lt {

namespace {

constexpr int kMaxBisections = 40;  // equal weights can keep the counts apart for good

struct Bracket {
  float within = 0, beyond = 0;              // cutoffs
  int64_t kept_within = 0, kept_beyond = 0;  // weights kept at each
  bool settled() const { return kept_within - kept_beyond <= std::max<int64_t>(1, kept_within / 10); }
};

void count_kept(const LaneRows& rows, const float* weights, const float* cutoff, int64_t* kept) {
  std::fill(kept, kept + kBlockLabels, 0);
  for (int64_t f = 0; f <= rows.n_features; ++f)
    for (int lane = 0; lane < kBlockLabels; ++lane) {
      const float w = std::fabs(weights[f * kBlockLabels + lane]);
      kept[lane] += w != 0 && w >= cutoff[lane];
    }
}

}  // namespace

void cutoffs_by_budget(const LaneRows& rows, const LaneTargets& targets, const SolverParams& params,
                       const float* weights, float budget, float* cutoff) {
  const LaneKernels& kernels = LT_DISPATCH(lane_kernels);
  alignas(64) float trial[kBlockLabels] = {};
  int64_t kept[kBlockLabels];
  double limit[kBlockLabels], objective[kBlockLabels];
  Bracket brackets[kBlockLabels];
  kernels.objective(rows, targets, params, weights, trial, limit);
  count_kept(rows, weights, trial, kept);
  for (int lane = 0; lane < kBlockLabels; ++lane) {
    limit[lane] *= limit[lane] < 0 ? 1.0 - budget : 1.0 + budget;
    float largest = 0;
    for (int64_t f = 0; f <= rows.n_features; ++f)
      largest = std::max(largest, std::fabs(weights[f * kBlockLabels + lane]));
    trial[lane] = brackets[lane].beyond = std::nextafter(largest, INFINITY);
    brackets[lane].kept_within = kept[lane];
  }
  for (int round = 0; round < kMaxBisections; ++round) {  // the first asks whether everything may go
    kernels.objective(rows, targets, params, weights, trial, objective);
    count_kept(rows, weights, trial, kept);
    bool settled = true;
    for (int lane = 0; lane < kBlockLabels; ++lane) {
      Bracket& bracket = brackets[lane];
      if (round > 0 && bracket.settled()) continue;
      const bool fits = objective[lane] <= limit[lane];
      (fits ? bracket.within : bracket.beyond) = trial[lane];
      (fits ? bracket.kept_within : bracket.kept_beyond) = kept[lane];
      trial[lane] = bracket.within + 0.5f * (bracket.beyond - bracket.within);
      settled &= bracket.settled();
    }
    if (settled) break;
  }
  for (int lane = 0; lane < kBlockLabels; ++lane) cutoff[lane] = brackets[lane].within;
}

}  // namespace lt
