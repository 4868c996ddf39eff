// Rows scaled to unit Euclidean length. Rows of zeros stay as they are.
#pragma once

#include <cstdint>

namespace lt {

// out[p] = values[p] / |row of p| for rows given by offsets (n_rows + 1). Sums in double, so nothing overflows.
void unit_rows(int64_t n_rows, const int64_t* indptr, const float* values, int n_threads, float* out);

}  // namespace lt
