// The Newton direction: gradient and preconditioned conjugate gradients for H s = -g over the rows that are active in
// any lane. For *.simd.cpp files only.
//
//   H d = P d + sum_{i active} c_i phi''_i <x_i, d> x_i          P: curvature of the penalty, diagonal
//   M   = (1 - .01) + .01 diag(H)
//
// Every lane has its own step lengths and its own end: the model Q(s) = g.s + s.H s / 2 falls by alpha r.z / 2 in every
// iteration, and a lane stops at iteration k when k (Q_k - Q_{k-1}) >= tol Q_k: the last one gained little beside the
// average one.
#pragma once

#include "kernels/linear/newton_state.h"

namespace lt::LT_ISA {
namespace {  // nothing of this file is shared between instruction sets

template <class L>
class Direction {
 public:
  Direction(NewtonState& state, const L& loss) : s_(state), loss_(loss) {}

  // Gradient at the current weights, in the lanes that live. Returns |g|^2.
  LaneArray<double> begin() {
    find_active_rows();
    split_features();
    accumulate();
    return first_residual();
  }

  // Fills `step` in the lanes that live.
  void solve() {
    LaneArray<int32_t> running = s_.live;
    LaneArray<double> zr = zr_, dd = dd_, model = {}, tolerance, alpha, beta;
    for (int lane = 0; lane < kLanes; ++lane) {
      const double root = __builtin_sqrt(__builtin_sqrt(zr[lane] + idle_zr_[lane]));
      tolerance[lane] = root < 0.5 ? root : 0.5;
    }
    const int64_t limit = s_.n_active_features > 5 ? s_.n_active_features : 5;
    for (int64_t iteration = 1; iteration <= limit && any(load(running)) && !s_.params.stopped(); ++iteration) {
      const LaneArray<double> rows_dd = hessian_rows();
      for (int lane = 0; lane < kLanes; ++lane) {
        const double curvature = dd[lane] + rows_dd[lane];
        if (!(curvature > 1e-16)) running[lane] = 0;
        alpha[lane] = running[lane] ? zr[lane] / curvature : 0;
        const double gain = 0.5 * alpha[lane] * zr[lane];
        model[lane] -= gain;
        if (!(static_cast<double>(iteration) * gain > tolerance[lane] * -model[lane])) running[lane] = 0;
      }
      const f32x16 along = to_lanes(alpha);
      LaneSum zr_sum, dd_sum;
      for (int64_t k = 0; k < s_.n_active_features; ++k) {
        const int64_t at = s_.active_features[k] * int64_t{kLanes};
        const f32x16 r = load(s_.residual + at) - along * load(s_.search + 2 * at + kLanes);
        store(s_.step + at, load(s_.step + at) + along * load(s_.search + 2 * at));
        store(s_.residual + at, r);
        zr_sum.add(r * r * load(s_.preconditioner + at));
      }
      const i32x16 runs = load(running);
      if (!any(runs)) return;
      const LaneArray<double> next_zr = zr_sum.totals();
      for (int lane = 0; lane < kLanes; ++lane) {
        beta[lane] = running[lane] && zr[lane] > 0 ? next_zr[lane] / zr[lane] : 0;
        zr[lane] = next_zr[lane];
      }
      const f32x16 back = to_lanes(beta);
      for (int64_t k = 0; k < s_.n_active_features; ++k) {
        const int64_t f = s_.active_features[k], at = f * kLanes;
        f32x16 d = load(s_.residual + at) * load(s_.preconditioner + at) + back * load(s_.search + 2 * at);
        d = select(runs, d, f32x16{});
        const f32x16 product = s_.penalty_hessian(f, load(s_.weights + at)) * d;
        store(s_.search + 2 * at, d);
        store(s_.search + 2 * at + kLanes, product);
        dd_sum.add(product * d);
      }
      dd = dd_sum.totals();
    }
  }

 private:
  void find_active_rows() {
    s_.n_active = 0;
    const i32x16 live = load(s_.live);
    for (int64_t k = 0; k < s_.n_awake; ++k) {
      const int64_t i = s_.awake[k];
      const f32x16 z = load(s_.scores + i * kLanes);
      const RowTarget target = row_target(s_.targets, i);
      const f32x16 slope = select(live, target.cost * loss_.slope(z, target.sign), f32x16{});
      const f32x16 curvature = select(live, target.cost * loss_.curvature(z, target.sign), f32x16{});
      if (!any((slope != 0.0f) | (curvature != 0.0f))) continue;
      store(s_.moves + s_.n_active * kLanes, slope);
      store(s_.curvature + s_.n_active * kLanes, curvature);
      s_.active[s_.n_active++] = static_cast<int32_t>(i);
    }
  }

  void split_features() {
    const LaneRows& rows = s_.rows;
    const bool most = 2 * s_.n_active >= rows.n_rows;  // then nearly every feature is active: not worth marking
    for (int64_t f = 0; f < rows.n_features; ++f) s_.marked[f] = most;
    for (int64_t k = 0; k < s_.n_active && !most; ++k) {
      const int64_t i = s_.active[k];
      for (int64_t p = rows.indptr[i]; p < rows.ends[i]; ++p) s_.marked[rows.feature(p)] = 1;
    }
    for (int64_t f = rows.dense_at(); s_.n_active && f < rows.n_features; ++f) s_.marked[f] = 1;
    s_.marked[s_.bias_at()] = 1;
    s_.n_active_features = 0;
    for (int64_t f = 0; f <= rows.n_features; ++f) {
      if (!s_.marked[f]) continue;
      s_.active_features[s_.n_active_features++] = static_cast<int32_t>(f);
      s_.supported[f] = 1;
    }
  }

  // Gradient and diagonal of the Hessian over the active rows and features.
  void accumulate() {
    const LaneRows& rows = s_.rows;
    for (int64_t k = 0; k < s_.n_active_features; ++k) {
      const int64_t f = s_.active_features[k], at = f * kLanes;
      const f32x16 w = load(s_.weights + at);
      store(s_.residual + at, -s_.penalty_of(f).slope(w));
      store(s_.preconditioner + at, s_.penalty_hessian(f, w));
    }
    LaneSum bias_slope, bias_curvature;
    for (int64_t k = 0; k < s_.n_active; ++k) {
      const int64_t i = s_.active[k];
      if (k + 4 < s_.n_active) prefetch_row(rows, s_.active[k + 4]);
      const f32x16 slope = load(s_.moves + k * kLanes), curvature = load(s_.curvature + k * kLanes);
      for (int64_t p = rows.indptr[i]; p < rows.ends[i]; ++p) {
        const int64_t at = rows.feature(p) * int64_t{kLanes};
        const float x = rows.values[p];
        store(s_.residual + at, load(s_.residual + at) - slope * x);
        store(s_.preconditioner + at, load(s_.preconditioner + at) + curvature * (x * x));
      }
      const float* x = rows.n_dense ? rows.dense_row(i) : nullptr;
      for (int64_t f = 0; f < rows.n_dense; ++f) {
        const int64_t at = (rows.dense_at() + f) * kLanes;
        store(s_.residual + at, load(s_.residual + at) - slope * x[f]);
        store(s_.preconditioner + at, load(s_.preconditioner + at) + curvature * (x[f] * x[f]));
      }
      bias_slope.add(slope);
      bias_curvature.add(curvature);
    }
    const int64_t at = s_.bias_at() * kLanes;
    const double bias = s_.params.bias;
    const LaneArray<double> slope = bias_slope.totals(), curvature = bias_curvature.totals();
    for (int lane = 0; lane < kLanes; ++lane) {
      s_.residual[at + lane] = static_cast<float>(s_.residual[at + lane] - bias * slope[lane]);
      s_.preconditioner[at + lane] = static_cast<float>(s_.preconditioner[at + lane] + bias * bias * curvature[lane]);
    }
  }

  // First residual and direction of conjugate gradients. Idle features have the gradient P w and the step -w.
  LaneArray<double> first_residual() {
    LaneSum square, zr, dd, idle_zr;
    for (int64_t k = 0; k < s_.n_active_features; ++k) {
      const int64_t f = s_.active_features[k], at = f * kLanes;
      const f32x16 r = load(s_.residual + at);
      const f32x16 inverse = 1.0f / (0.99f + 0.01f * load(s_.preconditioner + at)), d = r * inverse;
      const f32x16 product = s_.penalty_hessian(f, load(s_.weights + at)) * d;
      store(s_.preconditioner + at, inverse);
      store(s_.step + at, f32x16{});
      store(s_.search + 2 * at, d);
      store(s_.search + 2 * at + kLanes, product);
      square.add(r * r);
      zr.add(r * d);
      dd.add(product * d);
    }
    for (int64_t f = 0; f < s_.rows.n_features; ++f) {
      if (s_.marked[f] || !s_.supported[f]) continue;
      const f32x16 w = load(s_.weights + f * kLanes), curvature = s_.penalty.curvature(w), g = curvature * w;
      store(s_.step + f * kLanes, -w);
      square.add(g * g);
      idle_zr.add(g * g / (0.99f + 0.01f * curvature));
    }
    zr_ = zr.totals();
    dd_ = dd.totals();
    idle_zr_ = idle_zr.totals();
    return square.totals();
  }

  // Adds the active rows' part of H d to `search`; returns what it adds to d H d.
  LaneArray<double> hessian_rows() {
    const LaneRows& rows = s_.rows;
    const float bias = s_.params.bias;
    float* bias_entry = s_.search + 2 * s_.bias_at() * kLanes;
    const f32x16 bias_start = load(bias_entry) * bias;
    LaneSum dhd, bias_sum;
    for (int64_t k = 0; k < s_.n_active; ++k) {
      const int64_t i = s_.active[k];
      if (k + 4 < s_.n_active) prefetch_row(rows, s_.active[k + 4]);
      if (k + 1 < s_.n_active) prefetch_rare<2 * kLanes>(rows, s_.active[k + 1], s_.search);
      const f32x16 t = dot<2 * kLanes>(rows, i, s_.search, bias_start);
      const f32x16 u = load(s_.curvature + k * kLanes) * t;
      axpy<2 * kLanes>(rows, i, u, s_.search + kLanes);
      dhd.add(u * t);
      bias_sum.add(u);
    }
    LaneArray<double> sum = bias_sum.totals();
    for (int lane = 0; lane < kLanes; ++lane) sum[lane] *= bias;
    store(bias_entry + kLanes, load(bias_entry + kLanes) + to_lanes(sum));
    return dhd.totals();
  }

  NewtonState& s_;
  const L& loss_;
  LaneArray<double> zr_, dd_, idle_zr_;  // zr = g M^-1 g, dd = d P d of the first direction
};

}  // namespace
}  // namespace lt::LT_ISA
