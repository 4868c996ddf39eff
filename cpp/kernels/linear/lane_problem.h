// Sixteen binary problems over the same rows, and the two solvers for them.
//
// Memory layout: weights are feature-major with the 16 labels of a block side by side,
//
//     weights[f * 16 + lane]      f = 0 .. n_features - 1, then one more row of 16 for the bias
//
// so that one non-zero of x costs one 64-byte load and one fused multiply-add for 16 labels. Features are renamed
// within a node in order of falling frequency: the few frequent ones, most of the non-zeros, stay in the near caches.
#pragma once

#include <cstdint>

#include "kernels/base/dispatch.h"
#include "kernels/base/stop_flag.h"

namespace lt {

constexpr int kBlockLabels = 16;          // solved side by side
constexpr int64_t kNearFeatures = 16384;  // whose lines of weights, a megabyte together, stay in near caches

// A row of weight zero gets an enormous diagonal: its dual variable, and with it its influence, stays at nothing.
constexpr float kLargestDiagonal = 1e30f;

enum class Loss : int32_t { squared_hinge = 0, hinge = 1, logistic = 2, huber_hinge = 3 };

// Where the primal solver starts. It ends at the same place from anywhere; from the mean-separating point it gets there
// soonest.
enum class Start : int32_t { zero = 0, mean_separating = 1, negative_bias = 2, negative_mean = 3 };

// Features of rows are held as eight times their number: an address multiplies by eight by itself, so that the line of
// a feature is found without a shift, an eighth of the work per non-zero.
constexpr int kLineStep = 8;
constexpr int64_t kMostFeatures = INT32_MAX / kLineStep;  // of a node

// Rows of one node, features renamed.
struct LaneRows {
  int64_t n_rows = 0;
  int64_t n_features = 0;
  // The entries of a row go from indptr[i] to ends[i]. As many zeros follow as make their number a multiple of four, so
  // that they can be read four at a time.
  const int64_t* indptr = nullptr;  // (n_rows + 1)
  const int64_t* ends = nullptr;    // (n_rows)
  const int32_t* lines = nullptr;   // (nnz): kLineStep times the feature
  const float* values = nullptr;    // (nnz)
  const float* sq_norms = nullptr;  // (n_rows), without the bias
  // Dual only, or null: where the entries end that belong to features of several rows; and the sum of squares of those
  // after them (n_rows), whose features no other row has.
  const int64_t* shared_ends = nullptr;
  const float* single_sq = nullptr;
  int64_t n_shared = 0;  // features of several rows: the first ones. Entries of the kNearFeatures first come first.
  // Dense columns, the last features: n_dense values of each row, from column 0 of row dense_rows[i] of a matrix whose
  // rows are a multiple of 16 floats apart, zero beyond n_dense.
  int64_t n_dense = 0;
  const float* dense = nullptr;
  int64_t dense_stride = 0;
  const int32_t* dense_rows = nullptr;  // (n_rows)
  // Primal only.
  const float* mean = nullptr;          // (n_features): mean of the rows
  const float* weighted_sum = nullptr;  // (n_features): sum of the rows, each times its row_weight

  int32_t feature(int64_t p) const { return static_cast<int32_t>(static_cast<uint32_t>(lines[p]) / kLineStep); }
  int64_t dense_at() const { return n_features - n_dense; }  // the first dense feature
  const float* dense_row(int64_t i) const { return dense + dense_rows[i] * dense_stride; }
};

// What up to 16 labels want of those rows. Slot 0 is that of rows that are negatives of every lane: most of them. So no
// solver needs to ask, of every row, whether it is one.
struct LaneTargets {
  int n_lanes = 0;
  const int32_t* slot = nullptr;      // (n_rows): position in the tables below
  const float* sign = nullptr;        // (n_slots, 16): +1 or -1; for the logistic loss anything from -1 (soft targets)
  const float* cost = nullptr;        // (n_slots, 16): weight of this row in the loss of this label; of slot 0, ...
  const float* row_weight = nullptr;  // ... times this (n_rows) or, where it is null, 1
  const float* diagonal = nullptr;    // (n_slots, 16): 1 / 2 cost, 1e30 at most (dual solver, squared hinge only)
  // For weights that were trained before, on some of these rows: which rows (n_rows), and where in the tables the sign
  // was -1 then (n_slots, 16; 1 there, else 0). Null: on none of them. Dual solver only.
  const uint8_t* known = nullptr;
  const float* flipped = nullptr;

  bool is_negative(int64_t row) const { return slot[row] == 0; }
};

struct SolverParams {
  Loss loss = Loss::squared_hinge;
  // Dual: largest minus smallest projected gradient. Primal: the gradient may be this times max(1, min(positives,
  // negatives)) / rows of the gradient at zero; 0.01 is customary.
  float tolerance = 0.1f;
  int32_t max_iter = 100;                // dual: passes; primal: Newton steps
  float bias = 1.0f;                     // value of the constant feature; 0 for none
  bool regularize_bias = true;           // primal only: the dual always does
  float l2 = 1.0f;                       // primal only: the dual has 1
  float l1 = 0.0f;                       // primal only: weight of the smoothed absolute value
  float smoothing = 0.1f;                // primal only: width of the Huber zones (hinge, L1)
  Start start = Start::mean_separating;  // primal only
  bool sample_first = true;        // dual only: begin with the positives and some of the other rows, skip small steps
  const StopFlag* stop = nullptr;  // once it is set a solver returns soon, with whatever weights it has

  bool stopped() const { return stop && stop->asked(); }
};

// Weights that are kept of a block, in any order of features; the lanes of a feature ascend.
struct KeptWeights {
  int32_t* feature = nullptr;
  uint8_t* lane = nullptr;
  float* value = nullptr;
  int64_t n = 0, room = 0;
  void (*grow)(KeptWeights& kept) = nullptr;  // makes room for 16 more
};

// Result per lane, as data.
struct LaneStatus {
  int32_t iterations[16];
  float violation[16];  // last value of the stopping quantity
  bool converged[16];
};

struct LaneKernels {
  // Bytes of scratch a solver needs for these rows.
  int64_t (*dual_scratch)(const LaneRows& rows);
  // Dual coordinate descent (squared hinge, hinge). `weights` (n_features + 1, 16), 64-byte aligned, zero at first.
  // Those of features of a single row (rows.shared_ends) stay zero: they follow from the scratch by the next two.
  void (*solve_dual)(const LaneRows& rows, const LaneTargets& targets, const SolverParams& params, uint64_t seed,
                     float* weights, void* scratch, LaneStatus* status);
  void (*weigh_singles)(const LaneRows& rows, const LaneTargets& targets, const void* scratch, float* weights);
  void (*harvest_singles)(const LaneRows& rows, const LaneTargets& targets, const void* scratch, const float* cutoff,
                          KeptWeights& kept);
  int64_t (*newton_scratch)(const LaneRows& rows);
  // Newton's method (squared hinge, logistic, Huber hinge). `weights` as above; it fills in the starting point itself.
  void (*solve_newton)(const LaneRows& rows, const LaneTargets& targets, const SolverParams& params, float* weights,
                       void* scratch, LaneStatus* status);
  // Objective of every lane with the weights below its cutoff (in absolute value, bias included) taken as 0.
  void (*objective)(const LaneRows& rows, const LaneTargets& targets, const SolverParams& params, const float* weights,
                    const float* cutoff, double* objective);
  // Keeps every weight of features [begin, end) with |w| >= cutoff[lane], w != 0 and lane < n_lanes, and sets all of
  // them to zero. `cutoff` (16), 64-byte aligned.
  void (*harvest)(float* weights, int64_t begin, int64_t end, int n_lanes, const float* cutoff, KeptWeights& kept);
};

LT_DECLARE(LaneKernels, lane_kernels)

}  // namespace lt
