#include "kernels/linear/dense_table.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "kernels/base/parallel.h"

namespace lt {

namespace {

struct RoundedChild {
  float step = 0, l1 = 0;
  int32_t code_sum = 0;
};

// Rounds the weights of a child; `codes` points to the first four.
RoundedChild round_child(const float* weights, int64_t n, int8_t* codes) {
  float largest = 0;
  for (int64_t j = 0; j < n; ++j) largest = std::max(largest, std::fabs(weights[j]));
  if (!std::isfinite(largest)) return {0, std::numeric_limits<float>::infinity(), 0};  // never left out
  RoundedChild out;
  out.step = largest / 127;
  int32_t absolute = 0;
  for (int64_t j = 0; j < n && out.step > 0; ++j) {
    const auto code = static_cast<int32_t>(std::clamp<long>(std::lrint(weights[j] / out.step), -127, 127));
    codes[j / 4 * 64 + j % 4] = static_cast<int8_t>(code);
    out.code_sum += code;
    absolute += std::abs(code);
  }
  out.l1 = out.step * static_cast<float>(absolute);
  return out;
}

}  // namespace

OwnedDenseTable::OwnedDenseTable(const ChunkLayerView& layer, int64_t n_columns, int n_threads)
    : n_columns_(n_columns), stride_((n_columns + 15) / 16 * 16) {
  int64_t n_groups = 0;
  for (int64_t chunk = 0; chunk < layer.n_chunks; ++chunk) {
    first_group_.push_back(n_groups);
    n_groups += (layer.chunk_children[chunk + 1] - layer.chunk_children[chunk] + 15) / 16;
  }
  weights_.assign(layer.n_children * stride_, 0.0f);
  codes_.assign(n_groups * 16 * stride_, 0);
  step_.assign(n_groups * 16, 0.0f);
  code_sum_.assign(n_groups * 16, 0);
  l1_.assign(n_groups * 16, 0.0f);
  const int64_t first_column = layer.n_features - n_columns;
  parallel_for(layer.n_chunks, n_threads, [&](int64_t chunk, int) {
    const int64_t first = layer.chunk_children[chunk], width = layer.chunk_children[chunk + 1] - first;
    const int64_t begin = layer.feature_ptr[chunk], end = layer.feature_ptr[chunk + 1];
    const uint32_t* entry_ptr = layer.entry_ptr + chunk;
    const int64_t base = layer.entry_base[chunk];
    for (int64_t f = begin; f < end; ++f) {  // all of them: that they ascend has not been checked
      const int64_t column = layer.features[f] - first_column;
      if (column < 0) continue;
      for (int64_t e = base + entry_ptr[f]; e < base + entry_ptr[f + 1]; ++e) {
        const int64_t child = first + layer.child[e];
        weights_[child * stride_ + column] = weight_of_entry(layer, e, child);
      }
    }
    for (int64_t j = 0; j < width; ++j) {
      const int64_t group = first_group_[chunk] + j / 16, slot = group * 16 + j % 16;
      const RoundedChild rounded = round_child(weights_.data() + (first + j) * stride_, n_columns,
                                               codes_.data() + group * 16 * stride_ + j % 16 * 4);
      step_[slot] = rounded.step;
      code_sum_[slot] = rounded.code_sum;
      l1_[slot] = rounded.l1;
    }
  });
}

DenseTable OwnedDenseTable::view() const {
  return {n_columns_,    stride_,      weights_.data(),  first_group_.data(),
          codes_.data(), step_.data(), code_sum_.data(), l1_.data()};
}

void OwnedDenseQuery::take(const float* values, int64_t n, double scale, int64_t stride) {
  x_.assign(stride, 0.0f);
  u_.assign(stride, 64);
  float largest = 0;
  double sum = 0;
  for (int64_t j = 0; j < n; ++j) {
    x_[j] = static_cast<float>(scale * values[j]);
    largest = std::max(largest, std::fabs(x_[j]));
    sum += std::fabs(x_[j]);
  }
  step_ = largest / 63;
  l1_ = static_cast<float>(sum);
  for (int64_t j = 0; j < n && step_ > 0; ++j)
    u_[j] = static_cast<uint8_t>(std::clamp<long>(std::lrint(x_[j] / step_), -63, 63) + 64);
}

}  // namespace lt
