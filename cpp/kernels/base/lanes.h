// Sixteen labels side by side: the vector type of the solvers, for *.simd.cpp files only.
//
// f32x16 is one 512-bit register, two of 256 bits or four of 128 bits:
//
//   AVX-512       f32x16 = f32xN                  a native vector
//   AVX2          f32x16 = Two<f32xN>             lo: lanes 0-7     hi: lanes 8-15
//   SSE2, NEON    f32x16 = Two<Two<f32xN>>        lo.lo: lanes 0-3 ...
//
// GCC and Clang also accept a 64-byte vector where no register has 64 bytes, but keep it in memory: 27 instructions for
// a load, a multiplication and an addition where two are enough. A struct of native registers is taken apart instead.
// For the same reason no single lane can be written: whoever decides lane by lane keeps an array of 16 and loads it.
#pragma once

#include <cstdint>

#include "kernels/base/vector_register.h"

#if defined(__AVX2__) || defined(__SSE2__)
#include <immintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

namespace lt::LT_ISA {

constexpr int kLanes = 16;

template <class V>
struct Two {
  V lo, hi;
};

#if defined(__AVX512F__)
typedef f32xN f32x16;
typedef i32xN i32x16;
#elif defined(__AVX2__)
typedef Two<f32xN> f32x16;
typedef Two<i32xN> i32x16;
#else
typedef Two<Two<f32xN>> f32x16;
typedef Two<Two<i32xN>> i32x16;
#endif

// Arithmetic, comparisons (to masks of 0 or -1 per lane) and bits, half by half; a scalar stands for 16 of itself.
#define LT_BINARY(op)                                                                                \
  template <class V>                                                                                 \
  static LT_INLINE auto operator op(const Two<V>& a, const Two<V>& b)->Two<decltype(a.lo op b.lo)> { \
    return {a.lo op b.lo, a.hi op b.hi};                                                             \
  }                                                                                                  \
  template <class V>                                                                                 \
  static LT_INLINE auto operator op(const Two<V>& a, float b)->Two<decltype(a.lo op b)> {            \
    return {a.lo op b, a.hi op b};                                                                   \
  }                                                                                                  \
  template <class V>                                                                                 \
  static LT_INLINE auto operator op(float a, const Two<V>& b)->Two<decltype(a op b.lo)> {            \
    return {a op b.lo, a op b.hi};                                                                   \
  }
LT_BINARY(+)
LT_BINARY(-)
LT_BINARY(*)
LT_BINARY(/)
LT_BINARY(<)
LT_BINARY(>)
LT_BINARY(<=)
LT_BINARY(>=)
LT_BINARY(!=)
#undef LT_BINARY
#define LT_BITWISE(op)                                                    \
  template <class V>                                                      \
  static LT_INLINE Two<V> operator op(const Two<V>& a, const Two<V>& b) { \
    return {a.lo op b.lo, a.hi op b.hi};                                  \
  }
LT_BITWISE(&)
LT_BITWISE(|)
#undef LT_BITWISE
template <class V>
static LT_INLINE Two<V> operator~(const Two<V>& a) {
  return {~a.lo, ~a.hi};
}
template <class V>
static LT_INLINE Two<V> operator-(const Two<V>& a) {
  return {-a.lo, -a.hi};
}
template <class V, class W>
static LT_INLINE Two<V>& operator+=(Two<V>& a, const W& b) {
  return a = a + b;
}

// mask ? a : b, lane by lane.
static LT_INLINE f32xN select(i32xN mask, f32xN a, f32xN b) { return mask ? a : b; }
static LT_INLINE f32xN max(f32xN a, f32xN b) { return a > b ? a : b; }
static LT_INLINE f32xN min(f32xN a, f32xN b) { return a < b ? a : b; }
template <class M, class V>
static LT_INLINE Two<V> select(const Two<M>& mask, const Two<V>& a, const Two<V>& b) {
  return {select(mask.lo, a.lo, b.lo), select(mask.hi, a.hi, b.hi)};
}
template <class V>
static LT_INLINE Two<V> max(const Two<V>& a, const Two<V>& b) {
  return {max(a.lo, b.lo), max(a.hi, b.hi)};
}
template <class V>
static LT_INLINE Two<V> min(const Two<V>& a, const Two<V>& b) {
  return {min(a.lo, b.lo), min(a.hi, b.hi)};
}

template <class V>
concept Halved = requires(V v) { v.lo; };
template <class V>
using Half = decltype(V::lo);

template <class V>
static LT_INLINE V splat_as(float x) {
  if constexpr (Halved<V>)
    return {splat_as<Half<V>>(x), splat_as<Half<V>>(x)};
  else
    return x - V{};
}
template <class V, class T>
static LT_INLINE V load_as(const T* p) {
  if constexpr (Halved<V>)
    return {load_as<Half<V>>(p), load_as<Half<V>>(p + sizeof(V) / sizeof(T) / 2)};
  else
    return *reinterpret_cast<const V*>(p);
}
template <class V, class T>
static LT_INLINE void store_as(T* p, const V& v) {
  if constexpr (Halved<V>) {
    store_as(p, v.lo);
    store_as(p + sizeof(V) / sizeof(T) / 2, v.hi);
  } else {
    *reinterpret_cast<V*>(p) = v;
  }
}

template <class V>
static LT_INLINE V load_anywhere_as(const float* p) {
  if constexpr (Halved<V>)
    return {load_anywhere_as<Half<V>>(p), load_anywhere_as<Half<V>>(p + sizeof(V) / 8)};
  else
    return load_unaligned(p);
}

static LT_INLINE f32x16 splat(float x) { return splat_as<f32x16>(x); }
// p aligned to 64 bytes
static LT_INLINE f32x16 load(const float* p) { return load_as<f32x16>(p); }
static LT_INLINE f32x16 load_anywhere(const float* p) { return load_anywhere_as<f32x16>(p); }  // not aligned
static LT_INLINE i32x16 load(const int32_t* p) { return load_as<i32x16>(p); }
static LT_INLINE void store(float* p, const f32x16& v) { store_as(p, v); }
static LT_INLINE void store(int32_t* p, const i32x16& v) { store_as(p, v); }

// Sixteen numbers of which single ones are read and written.
template <class T>
struct alignas(64) LaneArray {
  T at[kLanes];
  LT_INLINE T& operator[](int lane) { return at[lane]; }
  LT_INLINE const T& operator[](int lane) const { return at[lane]; }
};
static LT_INLINE f32x16 load(const LaneArray<float>& lanes) { return load(lanes.at); }
static LT_INLINE i32x16 load(const LaneArray<int32_t>& lanes) { return load(lanes.at); }
static LT_INLINE LaneArray<float> lanes_of(const f32x16& v) {
  LaneArray<float> out;
  store(out.at, v);
  return out;
}

// True if any lane of a mask (0 or -1 per lane) is set.
static LT_INLINE bool any(i32xN mask) {
#if defined(__AVX512F__)
  return _mm512_test_epi32_mask(reinterpret_cast<__m512i>(mask), reinterpret_cast<__m512i>(mask)) != 0;
#elif defined(__AVX2__)
  return !_mm256_testz_si256(reinterpret_cast<__m256i>(mask), reinterpret_cast<__m256i>(mask));
#elif defined(__SSE2__)
  return _mm_movemask_epi8(reinterpret_cast<__m128i>(mask)) != 0;
#elif defined(__aarch64__)
  return vmaxvq_u32(reinterpret_cast<uint32x4_t>(mask)) != 0;
#else
  return (mask[0] | mask[1] | mask[2] | mask[3]) != 0;
#endif
}
template <class V>
static LT_INLINE bool any(const Two<V>& mask) {
  return any(mask.lo | mask.hi);
}
template <class V>
static LT_INLINE bool all(const V& mask) {
  return !any(~mask);
}

// Bit i of the result is lane i of a mask.
static LT_INLINE uint32_t bits(i32xN mask) {
#if defined(__AVX512F__)
  return _mm512_test_epi32_mask(reinterpret_cast<__m512i>(mask), reinterpret_cast<__m512i>(mask));
#elif defined(__AVX2__)
  return static_cast<uint32_t>(_mm256_movemask_ps(reinterpret_cast<__m256>(mask)));
#elif defined(__SSE2__)
  return static_cast<uint32_t>(_mm_movemask_ps(reinterpret_cast<__m128>(mask)));
#else
  const i32xN one_each = mask & i32xN{1, 2, 4, 8};
#if defined(__aarch64__)
  return vaddvq_u32(reinterpret_cast<uint32x4_t>(one_each));
#else
  return static_cast<uint32_t>(one_each[0] | one_each[1] | one_each[2] | one_each[3]);
#endif
#endif
}
template <class V>
static LT_INLINE uint32_t bits(const Two<V>& mask) {
  return bits(mask.lo) | bits(mask.hi) << (sizeof(V) / 4);
}

}  // namespace lt::LT_ISA
