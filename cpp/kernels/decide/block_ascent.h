// Block coordinate ascent for expected test utility: which k labels should each row name, so that a utility of the
// labels' confusion counts, expected under the probabilities eta, is largest?
//
// One row after another, in random order, is taken out of the counts, every candidate label is asked what naming it
// would gain, and the k best are named. The objective, times the number of labels m, is
//     (1 - w) * sum_j utility(t_j, q_j, p_j)  +  w * m / (n k) * sum_j t_j
// (the second term is precision at k). A row only changes if that improves the objective, so the objective never falls
// and a sweep without a change proves that no row can improve it alone. The first
// sweeps may give precision more weight than asked for (annealing): the smoother objective leads to better optima.
// Sweeps are sequential by nature; several runs (restarts, weights w) are solved side by side.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "kernels/base/parallel.h"
#include "kernels/base/views.h"

namespace lt {

enum class Utility {
  kNone,
  kPrecision,
  kRecall,
  kFBeta,
  kJaccard,
  kBalancedAccuracy,
  kGMean,
  kHMean,
  kFowlkesMallows,
  kCoverage,
  kFunction,
};

// A utility of fractions tp, fp, fn, tn, for `count` labels at once; fills `out`.
using UtilityFunction = std::function<void(int64_t count, const double* tp, const double* fp, const double* fn,
                                           const double* tn, double* out)>;

struct AscentSettings {
  Utility utility = Utility::kFBeta;
  UtilityFunction function;          // for kFunction
  double beta = 1.0;                 // of F-beta
  double epsilon = 0.0;              // added to denominators of normalised counts; 0/0 is 0
  int64_t k = 1;                     // slots a row
  bool exactly = true;               // name k labels even where that costs; otherwise only labels that gain
  bool candidates_only = false;      // never name a label that is no candidate of the row
  const uint8_t* allowed = nullptr;  // (n_cols), or null: labels that may fill a row beside its candidates
  double tol = 0.0;                  // stop when a sweep improves the objective by less
  int64_t max_sweeps = 100;
  std::vector<double> annealing;  // weights of precision in the first sweeps, where larger than the run's own
  bool shuffle = true;            // visit rows in a fresh random order in every sweep
};

enum class AscentStart { kGiven, kEmpty, kRandom };

struct AscentRun {
  uint64_t seed = 0;
  double precision_weight = 0.0;  // w
  AscentStart start = AscentStart::kEmpty;
  const int32_t* given = nullptr;  // (n_rows, k), -1 in empty slots, for kGiven
};

struct AscentResult {
  std::vector<int32_t> ids;       // (n_rows, k), sorted by id, -1 in empty slots
  std::vector<float> etas;        // (n_rows, k), their probabilities
  std::vector<double> utilities;  // of the start, then after each sweep
  bool converged = false;         // the last sweep changed nothing
};

// Rows of `eta` need not be sorted. Returns nothing if poll asked to stop.
std::vector<AscentResult> block_ascent(const CsrView& eta, const AscentSettings& settings,
                                       const std::vector<AscentRun>& runs, int n_threads, const Poll& poll = {});

}  // namespace lt
