// Where Newton starts, and the size of the gradient at zero. For *.simd.cpp files only.
//
// The mean-separating start (Schultheis & Babbar 2022): with s the mean of the positive rows, m the mean of all and
// p the share of positives, w = u s + v m such that <w, s> = 1 and <w, mean of the negatives> = -2, that is
// <w, m> = f = p - 2 (1 - p). Two equations in u and v, solved by Cramer's rule, so that s and m at right angles need
// no special case. From there most negatives lie beyond the margin, and the Hessian is sparse from the first step on.
#pragma once

#include "kernels/linear/newton_state.h"

namespace lt::LT_ISA {

static inline void count_positives(const LaneRows& rows, const LaneTargets& targets, double* count) {
  for (int lane = 0; lane < kLanes; ++lane) count[lane] = 0;
  for (int64_t i = 0; i < rows.n_rows; ++i) {
    if (targets.is_negative(i)) continue;
    const float* sign = targets.sign + targets.slot[i] * int64_t{kLanes};
    for (int lane = 0; lane < kLanes; ++lane) count[lane] += sign[lane] > 0;
  }
}

static inline void mean_separating_start(NewtonState& state, const double* n_positive) {
  const LaneRows& rows = state.rows;
  const float bias = state.params.bias;
  float* w = state.weights;
  LaneArray<double> inverse;  // 0 where there are none
  for (int lane = 0; lane < kLanes; ++lane) inverse[lane] = n_positive[lane] > 0 ? 1.0 / n_positive[lane] : 0.0;
  const f32x16 share = to_lanes(inverse);
  for (int64_t i = 0; i < rows.n_rows; ++i) {
    if (state.targets.is_negative(i)) continue;
    const f32x16 sign = load(state.targets.sign + state.targets.slot[i] * int64_t{kLanes});
    axpy<kLanes>(rows, i, select(sign > 0.0f, share, f32x16{}), w);
  }
  LaneSum ss_sum, sm_sum;
  double mm = static_cast<double>(bias) * bias;
  for (int64_t f = 0; f < rows.n_features; ++f) {
    const f32x16 s = load(w + f * kLanes);
    const float m = rows.mean[f];
    mm += static_cast<double>(m) * m;
    ss_sum.add(s * s);
    sm_sum.add(s * m);
  }
  const LaneArray<double> ss = ss_sum.totals(), sm = sm_sum.totals();
  LaneArray<double> u, v;
  for (int lane = 0; lane < kLanes; ++lane) {
    const double with_bias = n_positive[lane] > 0 ? static_cast<double>(bias) * bias : 0;
    const double a = ss[lane] + with_bias, b = sm[lane] + with_bias;
    const double p = n_positive[lane] / static_cast<double>(rows.n_rows), f = p - 2 * (1 - p);
    const double det = a * mm - b * b;
    const bool parallel = !(det > 1e-4 * a * mm);  // also: no positives, or no features
    u[lane] = parallel ? 0 : (mm - f * b) / det;
    v[lane] = parallel ? -1 : (f * a - b) / det;
  }
  const f32x16 along_s = to_lanes(u), along_m = to_lanes(v);
  for (int64_t f = 0; f < rows.n_features; ++f)
    store(w + f * kLanes, along_s * load(w + f * kLanes) + along_m * rows.mean[f]);
  store(w + rows.n_features * kLanes, (along_s + along_m) * bias);
}

// Writes the starting point into the weights, which are zero.
static inline void start_point(NewtonState& state, const double* n_positive) {
  const LaneRows& rows = state.rows;
  const float bias = state.params.bias;
  float* bias_weights = state.weights + state.bias_at() * kLanes;
  switch (state.params.start) {
    case Start::mean_separating:
      mean_separating_start(state, n_positive);
      break;
    case Start::negative_mean:
      for (int64_t f = 0; f < rows.n_features; ++f) store(state.weights + f * kLanes, splat(-rows.mean[f]));
      store(bias_weights, splat(-bias));
      break;
    case Start::negative_bias:
      store(bias_weights, splat(bias != 0 ? -1.0f / bias : 0.0f));
      break;
    case Start::zero:
      break;
  }
  const i32x16 live = load(state.live);
  for (int64_t f = 0; f <= rows.n_features; ++f) {
    float* w = state.weights + f * kLanes;
    store(w, select(live, load(w), f32x16{}));
  }
}

// |g(0)|^2 per lane: every loss has the slope -k y at score 0, so g(0) = -k sum_i c_i y_i x_i. Negatives of
// every lane have the same sign and cost; their sum, weighted, came with the rows. Uses `residual` as its scratch.
template <class L>
static inline void gradient_at_zero_sq(NewtonState& state, const L& loss, double* out) {
  const LaneRows& rows = state.rows;
  const LaneTargets& targets = state.targets;
  const f32x16 negative = load(targets.cost) * loss.slope(f32x16{}, splat(-1));
  for (int64_t f = 0; f < rows.n_features; ++f) store(state.residual + f * kLanes, negative * rows.weighted_sum[f]);
  LaneSum bias_correction;
  for (int64_t i = 0; i < rows.n_rows; ++i) {
    if (targets.is_negative(i)) continue;
    const RowTarget target = row_target(targets, i);
    const float weight = targets.row_weight ? targets.row_weight[i] : 1.0f;
    const f32x16 correction = target.cost * loss.slope(f32x16{}, target.sign) - negative * weight;
    axpy<kLanes>(rows, i, correction, state.residual);
    bias_correction.add(correction);
  }
  LaneSum norm;
  for (int64_t f = 0; f < rows.n_features; ++f) {
    const f32x16 g = load(state.residual + f * kLanes);
    norm.add(g * g);
  }
  double total_weight = static_cast<double>(rows.n_rows);
  if (targets.row_weight) {
    total_weight = 0;
    for (int64_t i = 0; i < rows.n_rows; ++i) total_weight += targets.row_weight[i];
  }
  const LaneArray<float> plain = lanes_of(negative);
  const LaneArray<double> correction = bias_correction.totals(), features = norm.totals();
  for (int lane = 0; lane < kLanes; ++lane) {
    const double g = state.params.bias * (plain[lane] * total_weight + correction[lane]);
    out[lane] = features[lane] + g * g;
  }
}

}  // namespace lt::LT_ISA
