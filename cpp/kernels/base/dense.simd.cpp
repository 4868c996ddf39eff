#include "kernels/base/dense.h"

#include "kernels/base/vector_register.h"

namespace lt::LT_ISA {

namespace {

float dot(const float* a, const float* b, int64_t n) {
  constexpr int kSums =
      32 / kRegister;  // of 32 products in any case: enough additions in flight, and no remainder more
  f32xN sums[kSums] = {};
  int64_t i = 0;
  for (; i + 32 <= n; i += 32)
    for (int part = 0; part < kSums; ++part)
      sums[part] += load_unaligned(a + i + part * kRegister) * load_unaligned(b + i + part * kRegister);
  for (int part = 1; part < kSums; ++part) sums[0] += sums[part];
  float total = sum_of(sums[0]);
  for (; i < n; ++i) total += a[i] * b[i];
  return total;
}

// As many rows of `a` as leave eight sums in registers.
constexpr int kTileRows = kRegister / 2;
constexpr int kParts = 16 / kRegister;

template <int n>
inline void dot_tile(const float* a, const float* block, int64_t d, float* out) {
  f32xN sums[n][kParts] = {};
  for (int64_t f = 0; f < d; ++f) {
    for (int part = 0; part < kParts; ++part) {
      const f32xN rows = load_unaligned(block + f * 16 + part * kRegister);
      for (int i = 0; i < n; ++i) sums[i][part] += a[i * d + f] * rows;
    }
  }
  for (int i = 0; i < n; ++i)
    for (int part = 0; part < kParts; ++part) store_unaligned(out + i * 16 + part * kRegister, sums[i][part]);
}

void dot_block(const float* a, int64_t n, const float* block, int64_t d, float* out) {
  int64_t i = 0;
  for (; i + kTileRows <= n; i += kTileRows) dot_tile<kTileRows>(a + i * d, block, d, out + i * 16);
  for (; i < n; ++i) dot_tile<1>(a + i * d, block, d, out + i * 16);
}

}  // namespace

extern const DenseKernels dense;
const DenseKernels dense = {dot, dot_block};

}  // namespace lt::LT_ISA
