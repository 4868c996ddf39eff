#include "kernels/sparse_product.h"

#include "kernels/vector_register.h"

namespace lt::LT_ISA {

namespace {

constexpr int kTile = 8;  // registers of sums, with room for the row that is added

// Columns [j, j + n * kLanes) of the result, whose sums stay in registers while the entries go by.
template <int n>
inline void tile(const SparseRow& x, const float* dense, int64_t c, const float* bias, int64_t j, float* out) {
  Register sums[n] = {};
  if (bias)
    for (int i = 0; i < n; ++i) sums[i] = *reinterpret_cast<const Register*>(bias + j + i * kLanes);
  for (int64_t p = 0; p < x.n; ++p) {
    const float* row = dense + x.indices[p] * c + j;
    for (int i = 0; i < n; ++i) sums[i] += x.values[p] * *reinterpret_cast<const Register*>(row + i * kLanes);
  }
  for (int i = 0; i < n; ++i) *reinterpret_cast<Register*>(out + j + i * kLanes) = sums[i];
}

void sparse_row(const SparseRow& x, const float* dense, int64_t c, const float* bias, float* out) {
  int64_t j = 0;
  for (; j + kTile * kLanes <= c; j += kTile * kLanes) tile<kTile>(x, dense, c, bias, j, out);
  if (j + kTile / 2 * kLanes <= c) {
    tile<kTile / 2>(x, dense, c, bias, j, out);
    j += kTile / 2 * kLanes;
  }
  if (j + kTile / 4 * kLanes <= c) {
    tile<kTile / 4>(x, dense, c, bias, j, out);
    j += kTile / 4 * kLanes;
  }
  if (j + kLanes <= c) {
    tile<1>(x, dense, c, bias, j, out);
    j += kLanes;
  }
  if (j == c) return;
  if (c >= kLanes) {  // the last ones again, with the same sums: faster than one by one
    tile<1>(x, dense, c, bias, c - kLanes, out);
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
