#ifdef __AVX512F__
#include <immintrin.h>
#endif

#include "kernels/two_means_kernels.h"

namespace lt::LT_ISA {

namespace {

typedef double f64x8 __attribute__((vector_size(64), aligned(8)));
typedef int64_t i64x8 __attribute__((vector_size(64), aligned(8)));
typedef float f32x8 __attribute__((vector_size(32), aligned(4)));

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

f64x8 load(const int64_t* from) { return __builtin_convertvector(*reinterpret_cast<const i64x8*>(from), f64x8); }

double total_of(f64x8 lanes) {
  double total = 0;
  for (int lane = 0; lane < 8; ++lane) total += lanes[lane];
  return total;
}

void squares(const int64_t* left, const int64_t* total, int64_t n, double* out) {
  f64x8 left2 = {}, right2 = {};
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const f64x8 l = load(left + i), r = load(total + i) - l;
    left2 += l * l;
    right2 += r * r;
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
  f64x8 change2 = {};
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const f64x8 l = load(left + i), r = load(total + i) - l;
    f32x8& place = *reinterpret_cast<f32x8*>(direction + i);
    const f64x8 now = r * right_scale - l * left_scale, change = now - __builtin_convertvector(place, f64x8);
    change2 += change * change;
    place = __builtin_convertvector(now, f32x8);
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
