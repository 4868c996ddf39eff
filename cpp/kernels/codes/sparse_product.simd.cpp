#include "kernels/codes/sparse_product.h"

#include "kernels/base/vector_register.h"

namespace lt::LT_ISA {

namespace {

constexpr int kTile = 8;  // registers of sums, with room for the row that is added

// Columns [j, j + n * kRegister) of the result, whose sums stay in registers while the entries go by.
template <int n>
inline void tile(const SparseRow& x, const float* dense, int64_t c, const float* bias, int64_t j, float* out) {
  f32xN sums[n] = {};
  if (bias)
    for (int i = 0; i < n; ++i) sums[i] = load_unaligned(bias + j + i * kRegister);
  for (int64_t p = 0; p < x.n; ++p) {
    const float* row = dense + x.indices[p] * c + j;
    for (int i = 0; i < n; ++i) sums[i] += x.values[p] * load_unaligned(row + i * kRegister);
  }
  for (int i = 0; i < n; ++i) store_unaligned(out + j + i * kRegister, sums[i]);
}

void sparse_row(const SparseRow& x, const float* dense, int64_t c, const float* bias, float* out) {
  int64_t j = 0;
  for (; j + kTile * kRegister <= c; j += kTile * kRegister) tile<kTile>(x, dense, c, bias, j, out);
  if (j + kTile / 2 * kRegister <= c) {
    tile<kTile / 2>(x, dense, c, bias, j, out);
    j += kTile / 2 * kRegister;
  }
  if (j + kTile / 4 * kRegister <= c) {
    tile<kTile / 4>(x, dense, c, bias, j, out);
    j += kTile / 4 * kRegister;
  }
  if (j + kRegister <= c) {
    tile<1>(x, dense, c, bias, j, out);
    j += kRegister;
  }
  if (j == c) return;
  if (c >= kRegister) {  // the last ones again, with the same sums: faster than one by one
    tile<1>(x, dense, c, bias, c - kRegister, out);
    return;
  }
  for (; j < c; ++j) {
    float sum = bias ? bias[j] : 0;
    for (int64_t p = 0; p < x.n; ++p) sum += x.values[p] * dense[x.indices[p] * c + j];
    out[j] = sum;
  }
}

void axpy(float x, const float* __restrict row, int64_t n, float* __restrict out) {
  for (int64_t j = 0; j < n; ++j) out[j] += x * row[j];
}

}  // namespace

extern const ProductKernels product_kernels;
const ProductKernels product_kernels = {sparse_row, axpy};

}  // namespace lt::LT_ISA
