#include "kernels/sparse_product.h"

namespace lt::LT_ISA {

namespace {

void axpy(float x, const float* __restrict row, int64_t n, float* __restrict out) {
  for (int64_t j = 0; j < n; ++j) out[j] += x * row[j];
}

}  // namespace

extern const ProductKernels product_kernels;
const ProductKernels product_kernels = {axpy};

}  // namespace lt::LT_ISA
