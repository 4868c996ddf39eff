// Balanced 2-means, many at once: rows are split in two again and again, at positions fixed beforehand.
//
// `order` is a permutation of the rows. A split (begin, cut, end) rearranges order[begin, end) so that the rows closer
// to the left centroid come before `cut`: start from two distinct random members, score each member by
// <c_right - c_left, z>, give the cut - begin lowest scores to the left (ties to the smaller row), recompute the
// centroids, stop when nothing moved or after max_iter assignments. Members stay in ascending order within each side.
//
// The same bits for any number of threads, because
//   - the seeds of a split come from (seed, begin, end);
//   - a score is a dot product of one row, summed in one order;
//   - centroid sums are kept as 64-bit integers (fixed point, scaled so that they cannot overflow): integer addition is
//     exact, so neither the order of additions nor adding and removing a row again leaves a trace. That also makes it
//     right to update a centroid by the rows that moved, which after the first iterations are few.
//
// The splits of a round run side by side; where they are fewer than threads, each has a team of its own, over which its
// loops are spread. A large one reads its rows where they lie, with dense vectors over all features; a small one copies
// them and renames their features to 0 .. d' - 1, so that its dense vectors cost what its rows cost (see two_means.h
// for one split).
#pragma once

#include <cstdint>

#include "kernels/base/parallel.h"
#include "kernels/base/views.h"

namespace lt {

struct Split {
  int64_t begin, cut, end;  // positions in `order`, begin < cut < end
};

struct SplitParams {
  int max_iter = 20;
  bool spherical = true;  // centroids at unit length; otherwise means
  uint64_t seed = 0;
  int64_t large = int64_t{1} << 20;  // entries from which on the rows of a split are not copied
};

// Runs rounds of splits: round r holds splits[round_ptr[r] .. round_ptr[r + 1]), disjoint within a round. Throws
// std::invalid_argument if a row is longer than 1e15. Returns false if poll asked to stop; poll sees the number of rows
// under finished splits.
bool balanced_splits(const CsrView& rows, const Split* splits, const int64_t* round_ptr, int64_t n_rounds,
                     const SplitParams& params, int n_threads, int32_t* order, const Poll& poll = {});
bool balanced_splits(const MatrixView<const float>& rows, const Split* splits, const int64_t* round_ptr,
                     int64_t n_rounds, const SplitParams& params, int n_threads, int32_t* order, const Poll& poll = {});

}  // namespace lt
