// The inner loops of a split, per instruction set. No standard containers here: see CMakeLists.txt.
#pragma once

#include <cstdint>

#include "kernels/base/dispatch.h"

namespace lt {

struct SplitKernels {
  // sum_i values[i] * dense[indices[i]]
  float (*gather_dot)(const float* dense, const int32_t* indices, const float* values, int64_t n);
  // out[0] = |left|^2, out[1] = |total - left|^2
  void (*squares)(const int64_t* left, const int64_t* total, int64_t n, double* out);
  // direction = (total - left) * right_scale - left * left_scale; returns |new - old direction|^2
  double (*direct)(const int64_t* left, const int64_t* total, int64_t n, double left_scale, double right_scale,
                   float* direction);
};

LT_DECLARE(SplitKernels, split_kernels)

}  // namespace lt
