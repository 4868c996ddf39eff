// Sparse matrix times dense matrix, row by row: a row's result depends on nothing but the row.
#pragma once

#include <cstdint>

#include "kernels/base/dispatch.h"
#include "kernels/base/parallel.h"
#include "kernels/base/views.h"

namespace lt {

// The entries of one row.
struct SparseRow {
  int64_t n;
  const int32_t* indices;  // (n)
  const float* values;     // (n)
};

struct ProductKernels {
  // out[j] = bias[j] (0 if null) + sum_p x.values[p] * dense[x.indices[p] * c + j], summed in the order of the entries
  void (*sparse_row)(const SparseRow& x, const float* dense, int64_t c, const float* bias, float* out);
  // out[j] += x * row[j]
  void (*axpy)(float x, const float* row, int64_t n, float* out);
};

LT_DECLARE(ProductKernels, product_kernels)

// out (n, c) = matrix (n, m) * dense (m, c) + bias (c) or zero if null; with `relu`, negative values become zero.
bool sparse_product(const CsrView& matrix, const MatrixView<const float>& dense, const float* bias, bool relu,
                    int n_threads, float* out, const Poll& poll = {});

// The same for dense rows (n, m).
bool dense_product(const MatrixView<const float>& matrix, const MatrixView<const float>& dense, const float* bias,
                   bool relu, int n_threads, float* out, const Poll& poll = {});

}  // namespace lt
