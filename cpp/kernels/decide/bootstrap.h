// Resampling of rows: sums of per-row quantities over rows drawn with replacement.
//
// Draw j of resample b is a pure function of (seed, b, j), so a resample is the same for any number of threads and can
// be drawn alone.
#pragma once

#include <cstdint>

#include "kernels/base/parallel.h"
#include "kernels/base/views.h"

namespace lt {

// counts[i] = how often row i is drawn in resample b; they add up to n.
void resample_counts(int64_t n, uint64_t seed, int64_t b, uint16_t* counts);

// sums(b, m) = sum over i of counts_b[i] * terms(i, m), for resamples b < n_resamples. `sums` is (n_resamples,
// terms.n_cols).
void resample_sums(const MatrixView<const double>& terms, int64_t n_resamples, uint64_t seed, int n_threads,
                   double* sums, const Poll& poll = {});

}  // namespace lt
