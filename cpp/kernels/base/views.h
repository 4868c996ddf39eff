// Borrowed views of the arrays that kernels work on. A view owns nothing; its arrays outlive the call.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

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

// Throws std::invalid_argument unless offsets start at 0, never fall, and end at `end`.
inline void check_offsets(const int64_t* offsets, int64_t n, int64_t end, const char* what) {
  bool rises = offsets[0] == 0 && offsets[n] == end;
  for (int64_t i = 0; i < n; ++i) rises &= offsets[i] <= offsets[i + 1];
  if (!rises)
    throw std::invalid_argument(std::string(what) + " must start at 0, never fall, and end at " + std::to_string(end));
}

// Whether numbers lie in [0, limit) and each is larger than the one before. Without branches: at the speed of memory.
inline bool ascends(const int32_t* numbers, int64_t n, int64_t limit) {
  if (n == 0) return true;
  bool rises = true;
  for (int64_t i = 1; i < n; ++i) rises &= numbers[i - 1] < numbers[i];
  return rises && numbers[0] >= 0 && numbers[n - 1] < limit;
}

// Throws std::invalid_argument unless the columns of a row, whose offsets are sound, ascend within the matrix.
inline void check_row(const CsrView& matrix, int64_t row) {
  if (!ascends(matrix.indices + matrix.begin(row), matrix.row_nnz(row), matrix.n_cols))
    throw std::invalid_argument("columns of row " + std::to_string(row) +
                                " must ascend without repetition from 0 on, below " + std::to_string(matrix.n_cols));
}

// Where rows are not read in the order in which they lie, each is asked for so many rows before its turn.
constexpr int64_t kRowsAhead = 2;

inline void prefetch_row(const CsrView& matrix, int64_t row) {
  const int64_t end = matrix.end(row);
  for (int64_t p = matrix.begin(row); p < end; p += 16) {
    __builtin_prefetch(matrix.indices + p);
    __builtin_prefetch(matrix.values + p);
  }
}

// Row-major matrix.
template <class T>
struct MatrixView {
  int64_t n_rows = 0;
  int64_t n_cols = 0;
  T* data = nullptr;  // (n_rows, n_cols)

  T* row(int64_t i) const { return data + i * n_cols; }
};

}  // namespace lt
