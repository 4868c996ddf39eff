// The inner loops of bucket decoding, per instruction set. No standard containers here: see CMakeLists.txt.
#pragma once

#include <cstdint>

#include "kernels/base/dispatch.h"

namespace lt {

// How a raw bucket score becomes the value that is aggregated.
enum class Link : int32_t {
  identity = 0,
  sigmoid = 1,  // 1 / (1 + exp(-z))
  hinge = 2,    // exp(-max(0, 1 - z)^2)
  softmax = 3,  // exp(z_b) / sum over the buckets of the repetition
};

// How the R values of a label become one.
enum class Aggregation : int32_t { sum = 0, min = 1, median = 2 };

constexpr int64_t kMostMedian = 64;  // repetitions that the median is taken over

struct BucketKernels {
  // out[i] = link(in[i]); every value goes through the same instructions, wherever it stands. For softmax, the
  // exponentials only, less `shift`.
  void (*link)(const float* in, int64_t n, Link link, float shift, float* out);
  // Bit q of hits[i] says whether the aggregated value of label i for query q reaches least[q].
  // values: (R * B, 16), 16 queries side by side, aligned to 64 bytes; table: (n, R).
  void (*scan)(const float* values, const int32_t* table, int64_t n, int64_t R, int64_t B, Aggregation aggregation,
               const float* least, uint16_t* hits);
  // Bit q of hits[i] says whether the sum of label i's steps for query q reaches least[q].
  // steps: (R * B, 64), 64 queries side by side, aligned to 64 bytes; R at most kMostSteps.
  void (*scan_steps)(const uint8_t* steps, const int32_t* table, int64_t n, int64_t R, int64_t B, const uint16_t* least,
                     uint64_t* hits);
};

constexpr int64_t kMostSteps = 257;  // 257 steps of 255 are what 16 bits hold

LT_DECLARE(BucketKernels, bucket_kernels)

}  // namespace lt
