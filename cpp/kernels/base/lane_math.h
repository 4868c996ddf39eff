// Arithmetic in lanes: sums that do not lose small terms, and the functions behind the logistic
// loss. For *.simd.cpp files only.
#pragma once

#include "kernels/base/lanes.h"

namespace lt::LT_ISA {

// A sum per lane over very many terms: single precision within a run of 64, double from run to run. A plain float sum
// over a hundred thousand rows is off by more than the tolerance of the solvers; doubles throughout cost twice the
// time.
class LaneSum {
 public:
  LT_INLINE void add(const f32x16& term) {
    run_ += term;
    if (++length_ == 64) flush();
  }
  LT_INLINE LaneArray<double> totals() const {
    LaneArray<double> out = total_;
    const LaneArray<float> run = lanes_of(run_);
    for (int lane = 0; lane < kLanes; ++lane) out[lane] += run[lane];
    return out;
  }

 private:
  LT_INLINE void flush() {
    total_ = totals();
    run_ = f32x16{};
    length_ = 0;
  }

  f32x16 run_ = {};
  LaneArray<double> total_ = {};
  int length_ = 0;
};

static LT_INLINE f32x16 abs(const f32x16& x) { return max(x, -x); }

static LT_INLINE f32x16 to_lanes(const LaneArray<double>& x) {
  LaneArray<float> out;
  for (int lane = 0; lane < kLanes; ++lane) out[lane] = static_cast<float>(x[lane]);
  return load(out);
}

// 2^n for whole n from -126 to 127.
static LT_INLINE f32xN power_of_two(f32xN n) {
  return reinterpret_cast<f32xN>((__builtin_convertvector(n, i32xN) + 127) << 23);
}
template <class V>
static LT_INLINE Two<V> power_of_two(const Two<V>& n) {
  return {power_of_two(n.lo), power_of_two(n.hi)};
}

// exp(-x) for x >= 0, to about one unit in the last place; values below 1e-37 become that.
static LT_INLINE f32x16 exp_negative(const f32x16& x) {
  const f32x16 y = -min(x, splat(85.0f));
  const f32x16 shift = splat(12582912.0f);  // 1.5 * 2^23: adding it rounds to the nearest integer
  const f32x16 n = (y * 1.44269504088896341f + shift) - shift;
  f32x16 r = y - n * 0.693359375f;  // ln 2 in two parts, the first exact in few bits
  r = r + n * 2.12194440e-4f;
  f32x16 p = splat(1.9875691500e-4f);  // Cephes: exp(r) = 1 + r + r^2 p(r) for |r| <= ln(2) / 2
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + r + 1.0f;
  return p * power_of_two(n);
}

// log(1 + x) for 0 <= x <= 1, as 2 atanh(x / (2 + x)): no cancellation for small x.
static LT_INLINE f32x16 log_one_plus(const f32x16& x) {
  const f32x16 t = x / (x + 2.0f), u = t * t;
  f32x16 p = splat(1.0f / 15);
  p = p * u + 1.0f / 13;
  p = p * u + 1.0f / 11;
  p = p * u + 1.0f / 9;
  p = p * u + 1.0f / 7;
  p = p * u + 1.0f / 5;
  p = p * u + 1.0f / 3;
  return 2.0f * (t + t * u * p);
}

}  // namespace lt::LT_ISA
