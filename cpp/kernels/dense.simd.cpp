#include "kernels/dense.h"

#include "kernels/vector_register.h"

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

// As many rows of `a` as leave eight sums in registers.
constexpr int kTile = kLanes / 2;
constexpr int kParts = 16 / kLanes;

template <int n>
inline void dot_tile(const float* a, const float* block, int64_t d, float* out) {
  Register sums[n][kParts] = {};
  for (int64_t f = 0; f < d; ++f) {
    for (int part = 0; part < kParts; ++part) {
      const Register rows = *reinterpret_cast<const Register*>(block + f * 16 + part * kLanes);
      for (int i = 0; i < n; ++i) sums[i][part] += a[i * d + f] * rows;
    }
  }
  for (int i = 0; i < n; ++i)
    for (int part = 0; part < kParts; ++part)
      *reinterpret_cast<Register*>(out + i * 16 + part * kLanes) = sums[i][part];
}

void dot_block(const float* a, int64_t n, const float* block, int64_t d, float* out) {
  int64_t i = 0;
  for (; i + kTile <= n; i += kTile) dot_tile<kTile>(a + i * d, block, d, out + i * 16);
  for (; i < n; ++i) dot_tile<1>(a + i * d, block, d, out + i * 16);
}

}  // namespace

extern const DenseKernels dense;
const DenseKernels dense = {dot, dot_block};

}  // namespace lt::LT_ISA
