// Whether a CSR matrix has the one form that kernels work on, looked at in a single go.
#pragma once

#include <cstdint>

#include "kernels/base/views.h"

namespace lt {

// True if offsets start at 0, never fall and end at nnz, the columns of every row ascend without repetition from 0 on,
// below n_cols, and no value is NaN or infinite.
bool is_canonical(const int32_t* indptr, int64_t n_rows, const int32_t* indices, const float* values, int64_t nnz,
                  int64_t n_cols);

// Throws std::invalid_argument for the first row whose columns do not ascend within the matrix. Its offsets are sound.
void check_rows(const CsrView& matrix, int n_threads);

}  // namespace lt
