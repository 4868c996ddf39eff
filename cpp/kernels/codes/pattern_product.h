// Inner products of dense rows where a sparse matrix has entries: the entries of Z Z^T on a pattern, never all of them.
#pragma once

#include <cstdint>

#include "kernels/base/parallel.h"
#include "kernels/base/views.h"

namespace lt {

// out[p] = <row i of a, row j of b> for every entry p = (i, j) of the pattern, in its order; values are not looked at.
// a: (pattern.n_rows, c), b: (pattern.n_cols, c), out: (nnz). An entry depends on nothing but its two rows. A column
// outside the pattern's range throws std::out_of_range. Returns false if poll asked to stop.
bool pattern_product(const CsrView& pattern, const MatrixView<const float>& a, const MatrixView<const float>& b,
                     int n_threads, float* out, const Poll& poll = {});

}  // namespace lt
