// Weights of dense columns while 16 labels are solved side by side. For *.simd.cpp files only.
//
// Sparse columns keep a line of 16 labels per feature, because a row names its features. A dense row has them all, and
// mostly a step moves two or three labels of the 16: here the weights lie label by label,
//
//     lane 0    w_0 w_1 w_2 ...  w_n-1      n floats, a multiple of 32         and the same in 16 bits
//     lane 1    ...
//
// so that a product reads the row once into registers and then streams the weights of the lanes that are asked for, and
// a step touches those of the lanes that move.
//
// Products are made of 16-bit integers, of the row and of the weights, each times a unit of its own: half the bytes and
// half the instructions. A vector v becomes round(v / unit) with |v| / unit <= kReach, so entries fit into 16 bits and,
// by Cauchy and Schwarz, every sum of products into 32: integer sums are exact. What rounding to units can add up to is
//
//     |x.w - their product| <= sqrt(n) / 2 (unit_x |w| + unit_w |x|) <= sqrt(n) unit_w |x|
//
// A lane in which that is more than `error` (a part of the solver's tolerance) is multiplied in floats instead. Steps
// are added to the weights in floats; where products are of 16 bits, so is the row that is added.
#pragma once

#include "kernels/base/lanes.h"
#include "kernels/base/short_vectors.h"
#include "kernels/linear/lane_problem.h"

namespace lt::LT_ISA {

constexpr int kPanel = 12;  // registers that hold a part of the row: 384 columns of 16 bits with AVX-512

// Sums of 16 registers each, as the lanes of the result: a tree of additions, within quarters first.
template <class Lanes, class V>
static LT_INLINE Lanes sums_of(const V* parts) {
#if defined(__AVX512F__)
  const auto pairs = [](V a, V b) {  // a0 + a2, b0 + b2, a1 + a3, b1 + b3 of every quarter
    return __builtin_shufflevector(a, b, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29) +
           __builtin_shufflevector(a, b, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31);
  };
  const auto fours = [](V ab, V cd) {  // a, b, c, d of every quarter
    return __builtin_shufflevector(ab, cd, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29) +
           __builtin_shufflevector(ab, cd, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
  };
  const auto quarters = [](V a, V b) {
    return __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27) +
           __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
  };
#elif defined(__AVX2__)
  const auto pairs = [](V a, V b) {
    return __builtin_shufflevector(a, b, 0, 8, 1, 9, 4, 12, 5, 13) +
           __builtin_shufflevector(a, b, 2, 10, 3, 11, 6, 14, 7, 15);
  };
  const auto fours = [](V ab, V cd) {
    return __builtin_shufflevector(ab, cd, 0, 1, 8, 9, 4, 5, 12, 13) +
           __builtin_shufflevector(ab, cd, 2, 3, 10, 11, 6, 7, 14, 15);
  };
  const auto halves = [](V a, V b) {
    return __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11) +
           __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15);
  };
#else
  const auto pairs = [](V a, V b) {
    return __builtin_shufflevector(a, b, 0, 4, 1, 5) + __builtin_shufflevector(a, b, 2, 6, 3, 7);
  };
  const auto fours = [](V ab, V cd) {
    return __builtin_shufflevector(ab, cd, 0, 1, 4, 5) + __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
  };
#endif
  const auto four = [&](int k) { return fours(pairs(parts[k], parts[k + 1]), pairs(parts[k + 2], parts[k + 3])); };
#if defined(__AVX512F__)
  return quarters(quarters(four(0), four(4)), quarters(four(8), four(12)));
#elif defined(__AVX2__)
  return {halves(four(0), four(4)), halves(four(8), four(12))};
#else
  return {{four(0), four(4)}, {four(8), four(12)}};
#endif
}

class DenseWeights {
 public:
  // `memory`: bytes(n_columns), aligned to 64. `error`: see above, for rows of at most `longest`.
  DenseWeights(void* memory, int64_t n_columns, float longest, float error)
      : weights_(static_cast<float*>(memory)),
        n_columns_(n_columns),
        stride_(short_stride(n_columns)),
        shorts_(reinterpret_cast<int16_t*>(weights_ + stride_ * kLanes)),
        coarsest_(error / (longest * __builtin_sqrtf(static_cast<float>(stride_)))) {}

  static int64_t bytes(int64_t n_columns) { return short_stride(n_columns) * kLanes * 6; }

  // From and to lines of 16 labels, (n_columns, 16).
  void take(const float* lines) {
    for (int64_t i = 0; i < stride_ * kLanes; ++i) weights_[i] = 0;
    for (int64_t f = 0; f < n_columns_; ++f)
      for (int lane = 0; lane < kLanes; ++lane) weights_[lane * stride_ + f] = lines[f * kLanes + lane];
    for (int lane = 0; lane < kLanes; ++lane) measure(lane);
  }
  void give(float* lines) const {
    for (int64_t f = 0; f < n_columns_; ++f)
      for (int lane = 0; lane < kLanes; ++lane) lines[f * kLanes + lane] = weights_[lane * stride_ + f];
  }

  // <x, w> of the lanes in the mask `lanes`, 0 for the others. x: row i.
  LT_INLINE f32x16 products(const LaneRows& rows, int64_t i, uint32_t lanes) const {
    const f32x16 z = short_products(rows.short_row(i), lanes & ~floats_) * (load(unit_) * rows.short_unit[i]);
    if (!(lanes & floats_)) return z;
    return z + float_products(rows.dense_row(i), rows.dense_stride / kRegister, lanes & floats_);
  }

  // w += step x in the lanes whose step is not zero. x: row i.
  LT_INLINE void add(const LaneRows& rows, int64_t i, const f32x16& step) {
    const LaneArray<float> steps = lanes_of(step);
    for (uint32_t left = bits(step != 0.0f); left; left &= left - 1) {
      const int lane = __builtin_ctz(left);
      if (floats_ >> lane & 1)
        add_floats(lane, rows.dense_row(i), rows.dense_stride / kRegister, steps[lane]);
      else
        add_shorts(lane, rows.short_row(i), rows.short_unit[i] * steps[lane]);
      reach_[lane] += __builtin_fabsf(steps[lane]) * rows.short_unit[i] * kReach;
      if (!(reach_[lane] <= kReach * unit_[lane])) measure(lane);
    }
  }

 private:
  LT_INLINE void add_shorts(int lane, const int16_t* x, float by) {
    float* w = weights_ + lane * stride_;
    int16_t* q = shorts_ + lane * stride_;
    const float per_unit = per_unit_[lane];
    for (int64_t f = 0; f < stride_; f += 2 * kRegister) {
      const f32xN first = load_unaligned(w + f) + by * shorts_to_floats(x + f);
      const f32xN second = load_unaligned(w + f + kRegister) + by * shorts_to_floats(x + f + kRegister);
      store_unaligned(w + f, first);
      store_unaligned(w + f + kRegister, second);
      store_shorts(q + f, first * per_unit, second * per_unit);
    }
  }

  LT_INLINE void add_floats(int lane, const float* x, int64_t n, float by) {
    float* w = weights_ + lane * stride_;
    for (int64_t v = 0; v < n; ++v)
      store_unaligned(w + v * kRegister, load_unaligned(w + v * kRegister) + by * load_unaligned(x + v * kRegister));
  }

  // A new unit for a lane, with room to grow to twice the length.
  __attribute__((noinline)) void measure(int lane) {
    const float* w = weights_ + lane * stride_;
    const int64_t n = stride_ / kRegister;
    f32xN sq = {};
    for (int64_t v = 0; v < n; ++v) sq += load_unaligned(w + v * kRegister) * load_unaligned(w + v * kRegister);
    reach_[lane] = __builtin_sqrtf(sum_of(sq)) * 1.0001f;
    unit_[lane] = reach_[lane] * (2.0f / kReach);
    const bool usable = unit_[lane] > 1e-30f && unit_[lane] <= coarsest_;
    per_unit_[lane] = usable ? 1.0f / unit_[lane] : 0.0f;
    floats_ = usable || reach_[lane] == 0 ? floats_ & ~(1u << lane) : floats_ | 1u << lane;
    for (int64_t f = 0; f < stride_; f += 2 * kRegister)
      store_shorts(shorts_ + lane * stride_ + f, load_unaligned(w + f) * per_unit_[lane],
                   load_unaligned(w + f + kRegister) * per_unit_[lane]);
  }

  LT_INLINE f32x16 short_products(const int16_t* x, uint32_t lanes) const {
    alignas(64) i32xN parts[kLanes];
    for (int lane = 0; lane < kLanes; ++lane) parts[lane] = i32xN{};
    const int64_t n = stride_ / (2 * kRegister);
    int64_t at = 0;
    for (; at + kPanel <= n; at += kPanel) {
      i16xN row[kPanel];
#pragma GCC unroll 12
      for (int v = 0; v < kPanel; ++v) row[v] = load_shorts(x + (at + v) * 2 * kRegister);
      for (uint32_t left = lanes; left; left &= left - 1) {
        const int lane = __builtin_ctz(left);
        const int16_t* w = shorts_ + lane * stride_ + at * 2 * kRegister;
        i32xN s0 = parts[lane], s1 = {};
#pragma GCC unroll 12
        for (int v = 0; v < kPanel; v += 2) {
          s0 += pair_products(row[v], load_shorts(w + v * 2 * kRegister));
          s1 += pair_products(row[v + 1], load_shorts(w + (v + 1) * 2 * kRegister));
        }
        parts[lane] = s0 + s1;
      }
    }
    if (at < n)
      for (uint32_t left = lanes; left; left &= left - 1) {
        const int lane = __builtin_ctz(left);
        const int16_t* w = shorts_ + lane * stride_;
        i32xN sum = parts[lane];
        for (int64_t v = at; v < n; ++v)
          sum += pair_products(load_shorts(x + v * 2 * kRegister), load_shorts(w + v * 2 * kRegister));
        parts[lane] = sum;
      }
    return to_floats(sums_of<i32x16>(parts));
  }

  LT_INLINE f32x16 float_products(const float* x, int64_t n, uint32_t lanes) const {
    alignas(64) f32xN parts[kLanes];
    for (int lane = 0; lane < kLanes; ++lane) parts[lane] = f32xN{};
    for (uint32_t left = lanes; left; left &= left - 1) {
      const int lane = __builtin_ctz(left);
      const float* w = weights_ + lane * stride_;
      f32xN s0 = {}, s1 = {};
      int64_t v = 0;
      for (; v + 2 <= n; v += 2) {
        s0 += load_unaligned(x + v * kRegister) * load_unaligned(w + v * kRegister);
        s1 += load_unaligned(x + (v + 1) * kRegister) * load_unaligned(w + (v + 1) * kRegister);
      }
      if (v < n) s0 += load_unaligned(x + v * kRegister) * load_unaligned(w + v * kRegister);
      parts[lane] = s0 + s1;
    }
    return sums_of<f32x16>(parts);
  }

  float* weights_;
  int64_t n_columns_, stride_;
  int16_t* shorts_;
  float coarsest_;               // unit in which products are precise enough
  uint32_t floats_ = 0;          // lanes that are multiplied in floats
  LaneArray<float> unit_ = {};   // of the shorts ...
  LaneArray<float> per_unit_{};  // ... and its inverse, 0 where they are not used
  LaneArray<float> reach_ = {};  // no less than |w|
};

}  // namespace lt::LT_ISA
