#include "kernels/base/canonical.h"

#include <atomic>
#include <bit>

#include "kernels/base/parallel.h"

namespace lt {

bool is_canonical(const int32_t* indptr, int64_t n_rows, const int32_t* indices, const float* values, int64_t nnz,
                  int64_t n_cols) {
  bool sound = indptr[0] == 0 && indptr[n_rows] == nnz;
  for (int64_t i = 0; i < n_rows; ++i) sound &= indptr[i] <= indptr[i + 1];
  if (!sound) return false;
  for (int64_t i = 0; i < n_rows; ++i)
    if (!ascends(indices + indptr[i], indptr[i + 1] - indptr[i], n_cols)) return false;
  constexpr uint32_t kExponent = 0x7F800000u;  // all bits of which NaN and infinity have
  for (int64_t p = 0; p < nnz; ++p) sound &= (std::bit_cast<uint32_t>(values[p]) & kExponent) != kExponent;
  return sound;
}

void check_rows(const CsrView& matrix, int n_threads) {
  std::atomic<int64_t> first_bad{matrix.n_rows};
  const auto look = [&](int64_t begin, int64_t end, int) {
    for (int64_t row = begin; row < end; ++row) {
      if (ascends(matrix.indices + matrix.begin(row), matrix.row_nnz(row), matrix.n_cols)) continue;
      int64_t known = first_bad;
      while (row < known && !first_bad.compare_exchange_weak(known, row)) {
      }
      return;
    }
  };
  constexpr int64_t kRows = 4096, kMany = int64_t{1} << 20;  // entries: fewer are checked before a thread has started
  if (matrix.nnz() < kMany)
    look(0, matrix.n_rows, 0);
  else
    parallel_blocks(matrix.n_rows, kRows, n_threads, look);
  if (first_bad < matrix.n_rows) check_row(matrix, first_bad);
}

}  // namespace lt
