// Borrowed views of the arrays that kernels work on. A view owns nothing; its arrays outlive the call.
#pragma once

#include <cstdint>

namespace lt {

// Compressed sparse rows: row i holds indices[indptr[i] .. indptr[i+1]) with their values.
struct CsrView {
  int64_t n_rows = 0;
  int64_t n_cols = 0;
  const int64_t* indptr = nullptr;   // (n_rows + 1)
  const int32_t* indices = nullptr;  // (nnz), sorted within a row, no duplicates
  const float* values = nullptr;     // (nnz)

  int64_t begin(int64_t row) const { return indptr[row]; }
  int64_t end(int64_t row) const { return indptr[row + 1]; }
  int64_t row_nnz(int64_t row) const { return indptr[row + 1] - indptr[row]; }
  int64_t nnz() const { return indptr[n_rows]; }
};

// Row-major matrix.
template <class T>
struct MatrixView {
  int64_t n_rows = 0;
  int64_t n_cols = 0;
  T* data = nullptr;  // (n_rows, n_cols)

  T* row(int64_t i) const { return data + i * n_cols; }
};

}  // namespace lt
