// The inner loops of stored output layers, per instruction set. No standard containers here: see CMakeLists.txt.
#pragma once

#include <cstdint>

#include "kernels/base/dispatch.h"

namespace lt {

struct OutputKernels {
  // block[c * 16 + r] = the number that raw[r * d + c] stands for, for n rows of d; lanes from n on are zero.
  void (*unpack16)(const uint16_t* raw, int64_t n, int64_t d, float* block);
  void (*unpack8)(const uint8_t* raw, int64_t n, int64_t d, float* block);
  // Fan-in, for n <= 16 labels from the first column of arrays whose rows are `stride` apart. x: (h, 16), aligned to
  // 64 bytes. index16 or index32 is null.
  //   out[j * 16 + r] = sum_s values[s * stride + j] * x[index[s * stride + j] * 16 + r]
  void (*fan_scores)(const float* x, const float* values, const uint16_t* index16, const int32_t* index32,
                     int64_t stride, int64_t f, int64_t n, float* out);
  //   dx[index * 16 + r] += values * g[j * 16 + r]
  void (*fan_inputs)(float* dx, const float* g, const float* values, const uint16_t* index16, const int32_t* index32,
                     int64_t stride, int64_t f, int64_t n);
  //   sums[(s * 16 + j) * 16 + r] += g[j * 16 + r] * x[index * 16 + r]
  void (*fan_weights)(const float* x, const float* g, const uint16_t* index16, const int32_t* index32, int64_t stride,
                      int64_t f, int64_t n, float* sums);
};

LT_DECLARE(OutputKernels, output_kernels)

}  // namespace lt
