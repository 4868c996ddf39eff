// Inner products with rows of 16 or 8 bits, straight from the arrays they were saved in.
#pragma once

#include <cstdint>

#include "kernels/base/parallel.h"
#include "kernels/base/views.h"

namespace lt {

// (n_rows, n_cols) row-major: bfloat16 in `sixteen`, or E4M3 in `eight`; the other is null.
struct ShortRows {
  int64_t n_rows = 0;
  int64_t n_cols = 0;
  const uint16_t* sixteen = nullptr;
  const uint8_t* eight = nullptr;
};

// As top_inner_products and inner_products of codes/recovery.h. Return false if poll asked to stop.
bool top_short_rows(const ShortRows& rows, const float* bias, const MatrixView<const float>& queries, int64_t k,
                    int n_threads, int32_t* ids, float* products, const Poll& poll = {});
bool short_products(const ShortRows& rows, const float* bias, const MatrixView<const float>& queries, int n_threads,
                    float* out, const Poll& poll = {});

}  // namespace lt
