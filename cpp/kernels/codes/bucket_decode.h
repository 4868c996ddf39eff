// From bucket scores back to labels: the decoder of MACH.
//
// Label i lies in bucket table[i, r] of repetition r; its score is scale * aggregate_r(value[r, table[i, r]]) + offset.
// The k best labels of a query are found exactly, in one of two ways that give the same bits:
//
//   pruned  A label whose mean reaches t has a value of at least t in some repetition (in every one, for the minimum;
//   in
//           half of them, for the median). A lower bound t of the k-th best score comes from the labels that share the
//           best buckets of a query; then only the members of buckets that reach t are scored.
//   scan    Where that leaves too many: all labels, for queries side by side, in one of two ways. Both only name labels
//           that may be among the best; their scores are computed by the same code as above.
//           steps   64 queries, sums. Values are rounded up to a multiple of 1/255 of their range, so that the values
//                   of a bucket for 64 queries are one vector of bytes: a label costs R vector loads and twice as many
//                   additions for 64 queries. The sum of steps bounds the score from above, and few labels that are
//                   not among the best get past it.
//           floats  16 queries, any aggregation: the 16 values of a bucket are one vector.
//
// Candidate decoding (the paper's): labels that occur in the `top_buckets` best buckets of at least `least_hits`
// repetitions (relaxed until there are k), scored over those buckets alone if the aggregate is a mean.
//
// Nothing of size n x L exists: a worker holds one counter per label and 64 queries' values.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/base/parallel.h"
#include "kernels/base/views.h"
#include "kernels/codes/bucket_kernels.h"

namespace lt {

struct BucketCode {
  int64_t n_labels = 0;
  int64_t n_repetitions = 0;       // R
  int64_t n_buckets = 0;           // B
  const int32_t* table = nullptr;  // (L, R), values in [0, B)
};

// Members of every bucket, ascending.
struct BucketMembers {
  std::vector<int64_t> starts;  // (R, B + 1)
  std::vector<int32_t> labels;  // (R, L)
};

struct DecodeParams {
  Link link = Link::identity;
  Aggregation aggregation = Aggregation::sum;
  float scale = 1, offset = 0;
  bool exact = true;
  bool partial = false;       // candidates: score only over the buckets that named them
  int64_t top_buckets = 50;   // candidates: buckets taken per repetition
  int64_t least_hits = 2;     // candidates: repetitions that must name a label
  bool allow_pruning = true;  // exact: false scans every query (for tests)
};

// table[i, r] = murmur3(first + i, seeds[r]) mod B for `count` labels.
void hash_labels(int64_t first, int64_t count, const uint32_t* seeds, int64_t n_repetitions, int64_t n_buckets,
                 int n_threads, int32_t* table);

BucketMembers bucket_members(const BucketCode& code, int n_threads);

// scores: (n, R * B) raw bucket scores; ids, out: (n, k), best first. Returns false if poll asked to stop.
bool decode_buckets(const BucketCode& code, const BucketMembers& members, const MatrixView<const float>& scores,
                    const DecodeParams& params, int64_t k, int n_threads, int32_t* ids, float* out,
                    const Poll& poll = {});

}  // namespace lt
