#include "kernels/base/canonical.h"

#include <bit>

#include "kernels/base/views.h"

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

}  // namespace lt
