// Predictions against truth: what every metric is computed from.
//
// Truth is CSR, predictions are the (n, slots) label ids of a TopK, padded with -1. No dense row is ever formed.
#pragma once

#include <cstdint>

#include "kernels/base/parallel.h"
#include "kernels/base/views.h"

namespace lt {

// gains(i, j) = truth(i, ids(i, j)), 0 where the label is not true or the slot is padded. `gains` has the shape of
// `ids`.
void match_gains(const CsrView& truth, const MatrixView<const int32_t>& ids, int n_threads, float* gains,
                 const Poll& poll = {});

// ideal(i, .) = the k largest of truth(i, l) * weights[l], descending, padded with 0: the gains of the best possible
// ranking. `weights` (n_cols) may be null for all ones. `ideal` is (n_rows, k).
void ideal_gains(const CsrView& truth, const double* weights, int64_t k, int n_threads, double* ideal,
                 const Poll& poll = {});

// sums[l] += row_weights[i] * values(i, j) for every slot j < k with ids(i, j) = l. Null values or weights are ones.
// One thread: the additions to a label happen in row order, so that graded sums have the same bits on every machine,
// and the loop is bound by memory. Throws std::out_of_range for an id outside [-1, n_labels).
void add_by_label(const MatrixView<const int32_t>& ids, int64_t k, const float* values, const double* row_weights,
                  int64_t n_labels, double* sums);

// sums[l] += row_weights[i] * truth(i, l) for every entry of truth, in the same manner.
void add_by_label(const CsrView& truth, const double* row_weights, double* sums);

}  // namespace lt
