// Dense vector arithmetic, per instruction set.
#pragma once

#include <cstdint>

#include "kernels/base/dispatch.h"

namespace lt {

struct DenseKernels {
  // sum_i a[i] * b[i]
  float (*dot)(const float* a, const float* b, int64_t n);
  // out[i * 16 + j] = <row i of a, row j of a block of 16>; a: (n, d) row-major, block: (d, 16), rows side by side so
  // that a lane is a row. Every product is summed from the first feature to the last, wherever it falls in the tiling.
  void (*dot_block)(const float* a, int64_t n, const float* block, int64_t d, float* out);
};

LT_DECLARE(DenseKernels, dense)

}  // namespace lt
