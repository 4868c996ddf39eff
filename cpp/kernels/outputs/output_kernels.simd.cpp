#include "kernels/outputs/output_kernels.h"

#include "kernels/base/lanes.h"

namespace lt::LT_ISA {

namespace {

LT_INLINE float number_of(uint32_t bits) {
  float out;
  __builtin_memcpy(&out, &bits, 4);
  return out;
}
LT_INLINE float wide(uint16_t raw) { return number_of(static_cast<uint32_t>(raw) << 16); }
// Exponent and mantissa moved to their places in a float are the number times 2^-120, subnormal ones included.
LT_INLINE float wide(uint8_t raw) {
  const float size = number_of(static_cast<uint32_t>(raw & 0x7F) << 20) * 0x1p120f;
  return raw & 0x80 ? -size : size;
}

template <class T>
void unpack(const T* raw, int64_t n, int64_t d, float* block) {
  constexpr int64_t kStrip = 64;  // columns that are decoded side by side before they are turned
  float strip[kStrip];
  for (int64_t r = 0; r < 16; ++r) {
    if (r >= n) {
      for (int64_t c = 0; c < d; ++c) block[c * 16 + r] = 0;
      continue;
    }
    for (int64_t begin = 0; begin < d; begin += kStrip) {
      const int64_t width = d - begin < kStrip ? d - begin : kStrip;
      const T* some = raw + r * d + begin;
      for (int64_t c = 0; c < width; ++c) strip[c] = wide(some[c]);
      for (int64_t c = 0; c < width; ++c) block[(begin + c) * 16 + r] = strip[c];
    }
  }
}

void unpack16(const uint16_t* raw, int64_t n, int64_t d, float* block) { unpack(raw, n, d, block); }
void unpack8(const uint8_t* raw, int64_t n, int64_t d, float* block) { unpack(raw, n, d, block); }

// Four labels at a time: enough sums in flight, and all of them in registers.
template <int count, class I>
LT_INLINE void score_some(const float* x, const float* values, const I* index, int64_t stride, int64_t f, float* out) {
  f32x16 sums[count] = {};
  for (int64_t s = 0; s < f; ++s)
    for (int j = 0; j < count; ++j)
      sums[j] += values[s * stride + j] * load(x + static_cast<int64_t>(index[s * stride + j]) * 16);
  for (int j = 0; j < count; ++j) store(out + j * 16, sums[j]);
}

template <class I>
LT_INLINE void score_all(const float* x, const float* values, const I* index, int64_t stride, int64_t f, int64_t n,
                         float* out) {
  int64_t j = 0;
  for (; j + 4 <= n; j += 4) score_some<4>(x, values + j, index + j, stride, f, out + j * 16);
  for (; j < n; ++j) score_some<1>(x, values + j, index + j, stride, f, out + j * 16);
}

void fan_scores(const float* x, const float* values, const uint16_t* index16, const int32_t* index32, int64_t stride,
                int64_t f, int64_t n, float* out) {
  if (index16)
    score_all(x, values, index16, stride, f, n, out);
  else
    score_all(x, values, index32, stride, f, n, out);
}

template <class I>
LT_INLINE void add_inputs(float* dx, const float* g, const float* values, const I* index, int64_t stride, int64_t f,
                          int64_t n) {
  for (int64_t j = 0; j < n; ++j) {
    const f32x16 slope = load(g + j * 16);
    if (!any(slope != splat(0))) continue;
    for (int64_t s = 0; s < f; ++s) {
      float* at = dx + static_cast<int64_t>(index[s * stride + j]) * 16;
      store(at, load(at) + values[s * stride + j] * slope);
    }
  }
}

void fan_inputs(float* dx, const float* g, const float* values, const uint16_t* index16, const int32_t* index32,
                int64_t stride, int64_t f, int64_t n) {
  if (index16)
    add_inputs(dx, g, values, index16, stride, f, n);
  else
    add_inputs(dx, g, values, index32, stride, f, n);
}

template <class I>
LT_INLINE void add_weights(const float* x, const float* g, const I* index, int64_t stride, int64_t f, int64_t n,
                           float* sums) {
  for (int64_t j = 0; j < n; ++j) {
    const f32x16 slope = load(g + j * 16);
    if (!any(slope != splat(0))) continue;
    for (int64_t s = 0; s < f; ++s) {
      float* at = sums + (s * 16 + j) * 16;
      store(at, load(at) + slope * load(x + static_cast<int64_t>(index[s * stride + j]) * 16));
    }
  }
}

void fan_weights(const float* x, const float* g, const uint16_t* index16, const int32_t* index32, int64_t stride,
                 int64_t f, int64_t n, float* sums) {
  if (index16)
    add_weights(x, g, index16, stride, f, n, sums);
  else
    add_weights(x, g, index32, stride, f, n, sums);
}

}  // namespace

extern const OutputKernels output_kernels;
const OutputKernels output_kernels = {unpack16, unpack8, fan_scores, fan_inputs, fan_weights};

}  // namespace lt::LT_ISA
