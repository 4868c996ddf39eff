#include "kernels/balanced_kmeans.h"

#ifdef __AVX2__
#include <immintrin.h>
#endif

namespace lt::LT_ISA {

namespace {

float dot(const float* dense, const int32_t* indices, const float* values, int64_t n) {
  int64_t i = 0;
  float total = 0;
#if defined(__AVX512F__)
  __m512 sum0 = _mm512_setzero_ps(), sum1 = _mm512_setzero_ps();
  for (; i + 32 <= n; i += 32) {
    sum0 = _mm512_fmadd_ps(_mm512_loadu_ps(values + i), _mm512_i32gather_ps(_mm512_loadu_si512(indices + i), dense, 4),
                           sum0);
    sum1 = _mm512_fmadd_ps(_mm512_loadu_ps(values + i + 16),
                           _mm512_i32gather_ps(_mm512_loadu_si512(indices + i + 16), dense, 4), sum1);
  }
  total = _mm512_reduce_add_ps(_mm512_add_ps(sum0, sum1));
#else
  float sum[8] = {};
  for (; i + 8 <= n; i += 8)
    for (int lane = 0; lane < 8; ++lane) sum[lane] += values[i + lane] * dense[indices[i + lane]];
  for (int lane = 0; lane < 8; ++lane) total += sum[lane];
#endif
  for (; i < n; ++i) total += values[i] * dense[indices[i]];
  return total;
}

}  // namespace

extern const GatherKernels gather;
const GatherKernels gather = {dot};

}  // namespace lt::LT_ISA
