// Label features from positive instances (PIFA): z_l = sum of the rows of X where label l is positive, at unit length.
//
// Labels are cut into blocks of a fixed number; a block sums its labels one after the other into one dense scratch row,
// so memory is the result plus one row per worker. Rows are added in ascending order: same bits for any thread count.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/base/parallel.h"
#include "kernels/base/raw_vector.h"
#include "kernels/base/views.h"

namespace lt {

struct OwnedCsr {
  std::vector<int64_t> indptr;  // (n_rows + 1)
  RawVector<int32_t> indices;   // (nnz)
  RawVector<float> values;      // (nnz)
};

// labels: (L, n), the rows of each label with their weights. max_features > 0 keeps the largest entries in absolute
// value (ties to the smaller column) before scaling to unit length; 0 keeps all. A label whose sum is zero gets an
// empty row. `dense`: further columns of the rows of X, after its own; none if it has no columns. Throws
// std::invalid_argument where a sum overflows. Returns false if poll asked to stop.
bool sum_positive_rows(const CsrView& X, const CsrView& labels, int64_t max_features, int n_threads, OwnedCsr& out,
                       const Poll& poll = {}, const MatrixView<const float>& dense = {});
bool sum_positive_rows(const MatrixView<const float>& X, const CsrView& labels, int n_threads,
                       const MatrixView<float>& out, const Poll& poll = {});

}  // namespace lt
