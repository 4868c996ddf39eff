// Vectors of 16-bit integers and their products. For *.simd.cpp files only.
#pragma once

#include "kernels/base/lanes.h"

namespace lt::LT_ISA {

typedef int16_t i16xN __attribute__((vector_size(4 * kRegister)));  // as many bytes as a register of floats
typedef int16_t HalfOfShorts __attribute__((vector_size(2 * kRegister), aligned(2)));

// p aligned to a register
static LT_INLINE i16xN load_shorts(const int16_t* p) { return *reinterpret_cast<const i16xN*>(p); }

// a_0 b_0 + a_1 b_1, a_2 b_2 + a_3 b_3, ...
static LT_INLINE i32xN pair_products(i16xN a, i16xN b) {
#if defined(__AVX512BW__)
  return reinterpret_cast<i32xN>(_mm512_madd_epi16(reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b)));
#elif defined(__AVX2__)
  return reinterpret_cast<i32xN>(_mm256_madd_epi16(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b)));
#elif defined(__SSE2__)
  return reinterpret_cast<i32xN>(_mm_madd_epi16(reinterpret_cast<__m128i>(a), reinterpret_cast<__m128i>(b)));
#elif defined(__aarch64__)
  const auto low =
      vmull_s16(vget_low_s16(reinterpret_cast<int16x8_t>(a)), vget_low_s16(reinterpret_cast<int16x8_t>(b)));
  return reinterpret_cast<i32xN>(
      vpaddq_s32(low, vmull_high_s16(reinterpret_cast<int16x8_t>(a), reinterpret_cast<int16x8_t>(b))));
#else
  i32xN out;
  for (int k = 0; k < kRegister; ++k) out[k] = int32_t{a[2 * k]} * b[2 * k] + int32_t{a[2 * k + 1]} * b[2 * k + 1];
  return out;
#endif
}

// Rounds numbers between -32,767 and 32,767: added to 1.5 * 2^23, they end in the last bits of a float.
static LT_INLINE void store_shorts(int16_t* p, f32xN first, f32xN second) {
  const auto low = reinterpret_cast<i32xN>(first + 12582912.0f), high = reinterpret_cast<i32xN>(second + 12582912.0f);
#if defined(__AVX512BW__)
  const i16xN a = reinterpret_cast<i16xN>(low), b = reinterpret_cast<i16xN>(high);
  *reinterpret_cast<i16xN*>(p) =
      __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32, 34, 36, 38, 40, 42,
                              44, 46, 48, 50, 52, 54, 56, 58, 60, 62);
#else
  *reinterpret_cast<HalfOfShorts*>(p) = __builtin_convertvector(low, HalfOfShorts);
  *reinterpret_cast<HalfOfShorts*>(p + kRegister) = __builtin_convertvector(high, HalfOfShorts);
#endif
}

static LT_INLINE int32_t sum_of(i32xN v) {
  int32_t total = 0;
  for (int lane = 0; lane < kRegister; ++lane) total += v[lane];
  return total;
}

static LT_INLINE f32xN to_floats(i32xN v) { return __builtin_convertvector(v, f32xN); }
static LT_INLINE f32xN shorts_to_floats(const int16_t* p) {
  return __builtin_convertvector(*reinterpret_cast<const HalfOfShorts*>(p), f32xN);
}
template <class V>
static LT_INLINE auto to_floats(const Two<V>& v) -> Two<decltype(to_floats(v.lo))> {
  return {to_floats(v.lo), to_floats(v.hi)};
}

}  // namespace lt::LT_ISA
