// Losses and penalties of the primal solver, each a struct of value, slope and curvature, 16 labels at a time.
//
// A loss is a function of the score z and the sign y of a row. `curvature` is what the Hessian uses. Where a function
// is linear (hinge and absolute value beyond their Huber zone) its second derivative is 0, and Newton would run off; it
// returns slope / distance instead, the curvature of the parabola that touches the function there and lies above it.
#pragma once

#include "kernels/base/lane_math.h"
#include "kernels/linear/lane_problem.h"

namespace lt::LT_ISA {

struct SquaredHinge {                    // max(0, 1 - y z)^2
  static constexpr bool kSleeps = true;  // a row beyond the margin has no slope and no curvature

  explicit SquaredHinge(const SolverParams&) {}
  LT_INLINE f32x16 change(const f32x16& z, const f32x16& moved,
                          const f32x16& y) const {  // value(moved) - value(z), without cancellation
    const f32x16 a = max(1.0f - y * z, f32x16{}), b = max(1.0f - y * moved, f32x16{});
    return (b - a) * (b + a);
  }
  LT_INLINE f32x16 value(const f32x16& z, const f32x16& y) const {
    const f32x16 a = max(1.0f - y * z, f32x16{});
    return a * a;
  }
  LT_INLINE f32x16 slope(const f32x16& z, const f32x16& y) const { return -2.0f * y * max(1.0f - y * z, f32x16{}); }
  LT_INLINE f32x16 curvature(const f32x16& z, const f32x16& y) const {
    return select(y * z < 1.0f, splat(2), f32x16{});
  }
};

struct Hinge {  // max(0, 1 - y z): not smooth, so the primal solver has no use for more than its value
  explicit Hinge(const SolverParams&) {}
  LT_INLINE f32x16 value(const f32x16& z, const f32x16& y) const { return max(1.0f - y * z, f32x16{}); }
};

struct HuberHinge {  // with m = 1 - y z and width h: 0 for m <= 0, m^2 / 2h up to m = h, m - h / 2 from there
  static constexpr bool kSleeps = true;

  explicit HuberHinge(const SolverParams& params) : width(splat(params.smoothing)) {}
  LT_INLINE f32x16 value(const f32x16& z, const f32x16& y) const {
    const f32x16 m = max(1.0f - y * z, f32x16{}), inside = min(m, width);
    return inside * inside / (2.0f * width) + (m - inside);
  }
  LT_INLINE f32x16 change(const f32x16& z, const f32x16& moved, const f32x16& y) const {
    return value(moved, y) - value(z, y);
  }
  LT_INLINE f32x16 slope(const f32x16& z, const f32x16& y) const {
    return -y * min(max(1.0f - y * z, f32x16{}) / width, splat(1));
  }
  LT_INLINE f32x16 curvature(const f32x16& z, const f32x16& y) const {
    const f32x16 m = 1.0f - y * z;
    return select(m > 0.0f, 1.0f / max(m, width), f32x16{});
  }
  f32x16 width;
};

struct Logistic {  // (1 + y) / 2 log(1 + e^-z) + (1 - y) / 2 log(1 + e^z): convex for any y
  static constexpr bool kSleeps = false;

  explicit Logistic(const SolverParams&) {}
  LT_INLINE f32x16 value(const f32x16& z, const f32x16& y) const {
    return max(z, f32x16{}) + log_one_plus(exp_negative(abs(z))) - 0.5f * (1.0f + y) * z;
  }
  LT_INLINE f32x16 change(const f32x16& z, const f32x16& moved, const f32x16& y) const {
    return value(moved, y) - value(z, y);
  }
  LT_INLINE f32x16 slope(const f32x16& z, const f32x16& y) const {
    const f32x16 e = exp_negative(abs(z));
    return select(z > 0.0f, splat(1), e) / (1.0f + e) - 0.5f * (1.0f + y);
  }
  LT_INLINE f32x16 curvature(const f32x16& z, const f32x16&) const {
    const f32x16 e = exp_negative(abs(z));
    return e / ((1.0f + e) * (1.0f + e));
  }
};

// l2 / 2 w^2 + l1 huber(w), with huber(w) = w^2 / 2h for |w| <= h, |w| - h / 2 beyond. Its slope is its curvature times
// w, everywhere: a weight that no row pulls at has its minimum, 0, exactly one Newton step away.
struct Penalty {
  float l2 = 0, l1 = 0, width = 1;

  LT_INLINE f32x16 value(const f32x16& w) const { return 0.5f * l2 * w * w + l1 * huber(w); }
  LT_INLINE f32x16 change(const f32x16& w, const f32x16& moved) const {  // value(moved) - value(w)
    const f32x16 square = 0.5f * l2 * (moved - w) * (moved + w);
    return l1 == 0 ? square : square + l1 * (huber(moved) - huber(w));
  }
  LT_INLINE f32x16 curvature(const f32x16& w) const {
    return l1 == 0 ? splat(l2) : l2 + l1 / max(abs(w), splat(width));
  }
  LT_INLINE f32x16 slope(const f32x16& w) const { return curvature(w) * w; }
  LT_INLINE f32x16 huber(const f32x16& w) const {
    const f32x16 a = abs(w), inside = min(a, splat(width));
    return inside * inside / (2.0f * width) + (a - inside);
  }
};

}  // namespace lt::LT_ISA
