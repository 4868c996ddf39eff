// Arithmetic of the primal solver in lanes: sums that do not lose small terms, and the functions behind the logistic
// loss. For *.simd.cpp files only.
#pragma once

#include "kernels/lanes.h"

namespace lt::LT_ISA {

// A sum per lane over very many terms: single precision within a run of 64, double from run to run. A plain float sum
// over a hundred thousand rows is off by more than the tolerance of the solvers; doubles throughout cost twice the
// time.
class LaneSum {
 public:
  void add(f32x16 term) {
    run_ += term;
    if (++length_ == 64) flush();
  }
  double operator[](int lane) const { return total_[lane] + run_[lane]; }

 private:
  void flush() {
    for (int lane = 0; lane < kLanes; ++lane) total_[lane] += run_[lane];
    run_ = f32x16{};
    length_ = 0;
  }

  f32x16 run_ = {};
  double total_[kLanes] = {};
  int length_ = 0;
};

static inline f32x16 abs(f32x16 x) { return max(x, -x); }

static inline f32x16 to_lanes(const double* x) {
  f32x16 out;
  for (int lane = 0; lane < kLanes; ++lane) out[lane] = static_cast<float>(x[lane]);
  return out;
}

// exp(-x) for x >= 0, to about one unit in the last place; values below 1e-37 become that.
static inline f32x16 exp_negative(f32x16 x) {
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
  const i32x16 exponent = (__builtin_convertvector(n, i32x16) + 127) << 23;
  return p * reinterpret_cast<f32x16>(exponent);
}

// log(1 + x) for 0 <= x <= 1, as 2 atanh(x / (2 + x)): no cancellation for small x.
static inline f32x16 log_one_plus(f32x16 x) {
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
