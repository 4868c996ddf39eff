// Weights of dense columns while 16 labels are solved side by side. For *.simd.cpp files only.
//
// Sparse columns keep a line of 16 labels per feature, because a row names its features. A dense row has them all, and
// mostly a step moves two or three labels of the 16: here the weights lie label by label,
//
//     lane 0    w_0 w_1 w_2 ...  w_n-1      n floats, a multiple of 16
//     lane 1    ...
//
// so that a product reads the row once into registers and then streams the weights of the lanes that are asked for, and
// a step touches those of the lanes that move.
#pragma once

#include "kernels/base/lanes.h"
#include "kernels/linear/lane_problem.h"

namespace lt::LT_ISA {

#if defined(__AVX512F__) || defined(__ARM_NEON)
constexpr int kPanel = 24;  // registers that hold a part of the row; 32 in all
#else
constexpr int kPanel = 8;  // 16 in all
#endif

// Sums of 16 registers each, as the lanes of the result.
static LT_INLINE f32x16 sums_of(const f32xN* parts) {
#if defined(__AVX512F__)
  // A tree of additions: neighbours within quarters of a register first, then quarters.
  const auto pairs = [](f32xN a, f32xN b) {  // a0 + a1, b0 + b1, a2 + a3, b2 + b3 of every quarter
    return __builtin_shufflevector(a, b, 0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30) +
           __builtin_shufflevector(a, b, 1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31);
  };
  const auto fours = [](f32xN a, f32xN b) {  // the sums of a's pairs, then those of b's, in every quarter
    return __builtin_shufflevector(a, b, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29) +
           __builtin_shufflevector(a, b, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
  };
  const auto quarters = [](f32xN a, f32xN b) {
    return __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27) +
           __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
  };
  const auto four = [&](int k) { return fours(pairs(parts[k], parts[k + 1]), pairs(parts[k + 2], parts[k + 3])); };
  return quarters(quarters(four(0), four(4)), quarters(four(8), four(12)));
#else
  LaneArray<float> out;
  for (int lane = 0; lane < kLanes; ++lane) out[lane] = sum_of(parts[lane]);
  return load(out);
#endif
}

class DenseWeights {
 public:
  // `memory`: bytes(n_columns), aligned to 64.
  DenseWeights(void* memory, int64_t n_columns)
      : weights_(static_cast<float*>(memory)), n_columns_(n_columns), stride_(padded(n_columns)) {}

  static int64_t padded(int64_t n_columns) { return (n_columns + kLanes - 1) / kLanes * kLanes; }
  static int64_t bytes(int64_t n_columns) { return padded(n_columns) * kLanes * 4; }

  // From and to lines of 16 labels, (n_columns, 16).
  void take(const float* lines) {
    for (int64_t i = 0; i < stride_ * kLanes; ++i) weights_[i] = 0;
    for (int64_t f = 0; f < n_columns_; ++f)
      for (int lane = 0; lane < kLanes; ++lane) weights_[lane * stride_ + f] = lines[f * kLanes + lane];
  }
  void give(float* lines) const {
    for (int64_t f = 0; f < n_columns_; ++f)
      for (int lane = 0; lane < kLanes; ++lane) lines[f * kLanes + lane] = weights_[lane * stride_ + f];
  }

  // <x, w> of the lanes in the mask `lanes`, 0 for the others. x: a row of `stride` floats.
  LT_INLINE f32x16 products(const float* x, uint32_t lanes) const {
    alignas(64) f32xN parts[kLanes];
    for (int lane = 0; lane < kLanes; ++lane) parts[lane] = f32xN{};
    const int64_t n = stride_ / kRegister;
    int64_t at = 0;
    for (; at + kPanel <= n; at += kPanel) add_panel(x, at, lanes, parts);
    if (at < n)
      for (uint32_t left = lanes; left; left &= left - 1) {
        const int lane = __builtin_ctz(left);
        const float* w = weights_ + lane * stride_;
        f32xN sum = parts[lane];
        for (int64_t v = at; v < n; ++v) sum += load_unaligned(x + v * kRegister) * load_unaligned(w + v * kRegister);
        parts[lane] = sum;
      }
    return sums_of(parts);
  }

  // w += step x in the lanes whose step is not zero.
  LT_INLINE void add(const float* x, const f32x16& step) {
    const LaneArray<float> steps = lanes_of(step);
    const int64_t n = stride_ / kRegister;
    for (uint32_t left = bits(step != 0.0f); left; left &= left - 1) {
      const int lane = __builtin_ctz(left);
      float* w = weights_ + lane * stride_;
      const float by = steps[lane];
      for (int64_t v = 0; v < n; ++v)
        store_unaligned(w + v * kRegister, load_unaligned(w + v * kRegister) + by * load_unaligned(x + v * kRegister));
    }
  }

 private:
  LT_INLINE void add_panel(const float* x, int64_t at, uint32_t lanes, f32xN* parts) const {
    f32xN row[kPanel];
#pragma GCC unroll 24
    for (int v = 0; v < kPanel; ++v) row[v] = load_unaligned(x + (at + v) * kRegister);
    for (uint32_t left = lanes; left; left &= left - 1) {
      const int lane = __builtin_ctz(left);
      const float* w = weights_ + lane * stride_ + at * kRegister;
      f32xN s0 = parts[lane], s1 = {}, s2 = {}, s3 = {};
#pragma GCC unroll 24
      for (int v = 0; v < kPanel; v += 4) {
        s0 += row[v] * load_unaligned(w + v * kRegister);
        s1 += row[v + 1] * load_unaligned(w + (v + 1) * kRegister);
        s2 += row[v + 2] * load_unaligned(w + (v + 2) * kRegister);
        s3 += row[v + 3] * load_unaligned(w + (v + 3) * kRegister);
      }
      parts[lane] = (s0 + s1) + (s2 + s3);
    }
  }

  float* weights_;
  int64_t n_columns_, stride_;
};

}  // namespace lt::LT_ISA
