// What the parts of the Newton solver share, carved out of one piece of scratch memory. For *.simd.cpp files only.
//
// Two kinds of sparsity keep it fast:
//   rows      most rows lie beyond the margin of every label, where the hinge losses have no slope and no curvature.
//             Gradient and Hessian products visit the `active` rows only, and rows so far beyond the margin that the
//             steps since their last visit cannot have brought them back are `asleep`: not even their score is
//             computed.
//   features  a feature of no active row is pulled at by its penalty alone: its Newton step is -w, known without
//             conjugate gradients. Such features are `idle` while their weight is not zero, and then leave the problem.
#pragma once

#include "kernels/linear/lane_losses.h"
#include "kernels/linear/lane_rows.h"

namespace lt::LT_ISA {

constexpr int kMaxHalvings = 20;
constexpr double kSufficientDecrease = 0.01;
constexpr double kRoundingOfObjective = 1e-6;  // relative

// Whether to take a step of length t that changes the objective by `change` and has the slope `slope` at its end.
// `descent` < 0 is the slope at its beginning. Near the optimum the change drowns in the rounding of its terms; the
// step is then judged by its slopes (Hager & Zhang 2005), which do not cancel.
static inline bool step_is_good(double change, double slope, double descent, double t, double objective) {
  if (change <= kSufficientDecrease * t * descent) return true;
  return change <= kRoundingOfObjective * objective && slope <= (2 * kSufficientDecrease - 1) * descent;
}

struct NewtonState {
  LaneRows rows;
  LaneTargets targets;
  SolverParams params;
  Penalty penalty, bias_penalty;
  float bias_damping = 0;
  LaneArray<int32_t> live = {};  // lanes still being solved: -1, else 0
  double objective[kLanes];

  // Per feature, the bias last: (n_features + 1, 16).
  float* weights = nullptr;
  float* preconditioner = nullptr;  // diagonal of the Hessian, then its inverse as used by conjugate gradients
  float* residual = nullptr;        // minus the gradient, then what conjugate gradients leave of it
  float* step = nullptr;            // where the weights are about to go; zero for features outside the problem
  float* search = nullptr;          // (n_features + 1, 2, 16): direction of conjugate gradients and its product with H
  int32_t* active_features = nullptr;  // ascending, the bias last
  int32_t* moving_features = nullptr;  // those with a weight or a step, ascending, the bias last
  uint8_t* marked = nullptr;           // belongs to an active row
  uint8_t* supported = nullptr;        // weight or step may be non-zero
  int64_t n_active_features = 0, n_moving_features = 0;

  // Per row.
  float* scores = nullptr;     // (n_rows, 16); of a sleeping row: its score less what could have been added since
  float* moves = nullptr;      // (n_awake, 16): change of the score along `step`; before that (n_active, 16): slopes
  float* curvature = nullptr;  // (n_active, 16)
  int32_t* awake = nullptr;
  int32_t* active = nullptr;
  uint8_t* asleep = nullptr;
  int64_t n_awake = 0, n_active = 0;

  int64_t bias_at() const { return rows.n_features; }
  const Penalty& penalty_of(int64_t f) const { return f == bias_at() ? bias_penalty : penalty; }
  // The penalty's part of the Hessian. A bias without penalty gets a little: where every row is far from the margin
  // nothing else holds it, and the Newton step would be without bound.
  LT_INLINE f32x16 penalty_hessian(int64_t f, const f32x16& w) const {
    return f == bias_at() ? bias_penalty.curvature(w) + bias_damping : penalty.curvature(w);
  }
};

class Carver {
 public:
  explicit Carver(void* memory) : memory_(static_cast<char*>(memory)) {}
  template <class T>
  T* take(int64_t n) {
    T* taken = memory_ ? reinterpret_cast<T*>(memory_ + used_) : nullptr;
    used_ += (n * static_cast<int64_t>(sizeof(T)) + 63) / 64 * 64;
    return taken;
  }
  int64_t used() const { return used_; }

 private:
  char* memory_;
  int64_t used_ = 0;
};

// Hands out the arrays; returns the number of bytes used. With memory = null it only counts.
static inline int64_t carve(const LaneRows& rows, void* memory, NewtonState& state) {
  const int64_t d = rows.n_features + 1, n = rows.n_rows;
  Carver carver(memory);
  state.preconditioner = carver.take<float>(d * kLanes);
  state.residual = carver.take<float>(d * kLanes);
  state.step = carver.take<float>(d * kLanes);
  state.search = carver.take<float>(d * 2 * kLanes);
  state.active_features = carver.take<int32_t>(d);
  state.moving_features = carver.take<int32_t>(d);
  state.marked = carver.take<uint8_t>(d);
  state.supported = carver.take<uint8_t>(d);
  state.scores = carver.take<float>(n * kLanes);
  state.moves = carver.take<float>(n * kLanes);
  state.curvature = carver.take<float>(n * kLanes);
  state.awake = carver.take<int32_t>(n);
  state.active = carver.take<int32_t>(n);
  state.asleep = carver.take<uint8_t>(n);
  return carver.used();
}

}  // namespace lt::LT_ISA
