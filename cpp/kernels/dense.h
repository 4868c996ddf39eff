// Dense vector arithmetic, per instruction set.
#pragma once

#include <cstdint>

#include "kernels/dispatch.h"

namespace lt {

struct DenseKernels {
  // sum_i a[i] * b[i]
  float (*dot)(const float* a, const float* b, int64_t n);
};

LT_DECLARE(DenseKernels, dense)

}  // namespace lt
