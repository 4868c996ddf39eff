#include "kernels/dense.h"

namespace lt::LT_ISA {

namespace {

typedef float f32x16 __attribute__((vector_size(64), aligned(4)));

float dot(const float* a, const float* b, int64_t n) {
  f32x16 sum0 = {}, sum1 = {};
  int64_t i = 0;
  for (; i + 32 <= n; i += 32) {
    sum0 += *reinterpret_cast<const f32x16*>(a + i) * *reinterpret_cast<const f32x16*>(b + i);
    sum1 += *reinterpret_cast<const f32x16*>(a + i + 16) * *reinterpret_cast<const f32x16*>(b + i + 16);
  }
  sum0 += sum1;
  float total = 0;
  for (int lane = 0; lane < 16; ++lane) total += sum0[lane];
  for (; i < n; ++i) total += a[i] * b[i];
  return total;
}

}  // namespace

extern const DenseKernels dense;
const DenseKernels dense = {dot};

}  // namespace lt::LT_ISA
