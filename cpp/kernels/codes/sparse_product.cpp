#include "kernels/codes/sparse_product.h"

#include <algorithm>

namespace lt {

namespace {

template <class MakeRow>
bool product(int64_t n, int64_t width, bool relu, int n_threads, float* out, const Poll& poll, MakeRow make_row) {
  const ProductKernels& kernels = LT_DISPATCH(product_kernels);
  auto rows = [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      float* to = out + i * width;
      make_row(kernels, i, to);
      if (relu)
        for (int64_t j = 0; j < width; ++j) to[j] = std::max(to[j], 0.0f);
    }
  };
  constexpr int64_t kRowsPerTask = 64;
  return parallel_blocks(n, kRowsPerTask, n_threads, rows, poll);
}

}  // namespace

bool sparse_product(const CsrView& matrix, const MatrixView<const float>& dense, const float* bias, bool relu,
                    int n_threads, float* out, const Poll& poll) {
  return product(matrix.n_rows, dense.n_cols, relu, n_threads, out, poll,
                 [&](const ProductKernels& kernels, int64_t i, float* to) {
                   const int64_t first = matrix.begin(i);
                   const SparseRow row{matrix.row_nnz(i), matrix.indices + first, matrix.values + first};
                   kernels.sparse_row(row, dense.data, dense.n_cols, bias, to);
                 });
}

bool dense_product(const MatrixView<const float>& matrix, const MatrixView<const float>& dense, const float* bias,
                   bool relu, int n_threads, float* out, const Poll& poll) {
  return product(matrix.n_rows, dense.n_cols, relu, n_threads, out, poll,
                 [&](const ProductKernels& kernels, int64_t i, float* to) {
                   if (bias)
                     std::copy(bias, bias + dense.n_cols, to);
                   else
                     std::fill(to, to + dense.n_cols, 0.0f);
                   for (int64_t f = 0; f < matrix.n_cols; ++f)
                     if (matrix.row(i)[f] != 0) kernels.axpy(matrix.row(i)[f], dense.row(f), dense.n_cols, to);
                 });
}

}  // namespace lt
