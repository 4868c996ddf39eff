#ifdef __AVX512F__
#include <immintrin.h>
#endif

#include "kernels/base/vector_register.h"
#include "kernels/tree/two_means_kernels.h"

namespace lt::LT_ISA {

namespace {

constexpr int kDoubles = kRegister / 2;  // in a register
constexpr int kSums = 8 / kDoubles;      // registers for eight sums, the same eight on every machine
typedef double f64xN __attribute__((vector_size(8 * kDoubles)));
typedef int64_t i64xN __attribute__((vector_size(8 * kDoubles), aligned(8)));
typedef float f32xHalf __attribute__((vector_size(4 * kDoubles), aligned(4)));

float gather_dot(const float* dense, const int32_t* indices, const float* values, int64_t n) {
  int64_t i = 0;
  float total = 0;
#ifdef __AVX512F__
  const __m512 zero = _mm512_setzero_ps();
  const auto gather = [&](int64_t at) {  // masked: the plain form reads an undefined register, as GCC points out
    return _mm512_mask_i32gather_ps(zero, 0xFFFF, _mm512_loadu_si512(indices + at), dense, 4);
  };
  __m512 sum0 = zero, sum1 = zero;
  for (; i + 32 <= n; i += 32) {
    sum0 = _mm512_fmadd_ps(_mm512_loadu_ps(values + i), gather(i), sum0);
    sum1 = _mm512_fmadd_ps(_mm512_loadu_ps(values + i + 16), gather(i + 16), sum1);
  }
  alignas(64) float sum[16];
  _mm512_store_ps(sum, _mm512_add_ps(sum0, sum1));
  for (const float lane : sum) total += lane;
#else
  float sum[8] = {};
  for (; i + 8 <= n; i += 8)
    for (int lane = 0; lane < 8; ++lane) sum[lane] += values[i + lane] * dense[indices[i + lane]];
  for (const float lane : sum) total += lane;
#endif
  for (; i < n; ++i) total += values[i] * dense[indices[i]];
  return total;
}

LT_INLINE f64xN load(const int64_t* from) {
  return __builtin_convertvector(*reinterpret_cast<const i64xN*>(from), f64xN);
}

LT_INLINE double total_of(const f64xN* sums) {
  double total = 0;
  for (int part = 0; part < kSums; ++part)
    for (int lane = 0; lane < kDoubles; ++lane) total += sums[part][lane];
  return total;
}

void squares(const int64_t* left, const int64_t* total, int64_t n, double* out) {
  f64xN left2[kSums] = {}, right2[kSums] = {};
  int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    for (int part = 0; part < kSums; ++part) {
      const int64_t at = i + part * kDoubles;
      const f64xN l = load(left + at), r = load(total + at) - l;
      left2[part] += l * l;
      right2[part] += r * r;
    }
  out[0] = total_of(left2);
  out[1] = total_of(right2);
  for (; i < n; ++i) {
    const double l = static_cast<double>(left[i]), r = static_cast<double>(total[i]) - l;
    out[0] += l * l;
    out[1] += r * r;
  }
}

double direct(const int64_t* left, const int64_t* total, int64_t n, double left_scale, double right_scale,
              float* direction) {
  f64xN change2[kSums] = {};
  int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    for (int part = 0; part < kSums; ++part) {
      const int64_t at = i + part * kDoubles;
      const f64xN l = load(left + at), r = load(total + at) - l;
      f32xHalf& place = *reinterpret_cast<f32xHalf*>(direction + at);
      const f64xN now = r * right_scale - l * left_scale, change = now - __builtin_convertvector(place, f64xN);
      change2[part] += change * change;
      place = __builtin_convertvector(now, f32xHalf);
    }
  double sum = total_of(change2);
  for (; i < n; ++i) {
    const double l = static_cast<double>(left[i]), r = static_cast<double>(total[i]) - l;
    const double now = r * right_scale - l * left_scale, change = now - direction[i];
    sum += change * change;
    direction[i] = static_cast<float>(now);
  }
  return sum;
}

}  // namespace

extern const SplitKernels split_kernels;
const SplitKernels split_kernels = {gather_dot, squares, direct};

}  // namespace lt::LT_ISA
