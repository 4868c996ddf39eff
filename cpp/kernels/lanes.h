// Sixteen labels side by side: the vector type of the solvers, for *.simd.cpp files only.
//
// GCC and Clang lower these types to whatever the instruction set has (one 512-bit register, two 256-bit, four
// 128-bit), so the arithmetic is written once. Only `any` needs a hint per instruction set.
#pragma once

#include <cstdint>

#if defined(__AVX512F__) || defined(__AVX2__)
#include <immintrin.h>
#endif

namespace lt::LT_ISA {

constexpr int kLanes = 16;

typedef float f32x16 __attribute__((vector_size(64)));
typedef int32_t i32x16 __attribute__((vector_size(64)));

static inline f32x16 splat(float x) { return f32x16{} + x; }
static inline f32x16 load(const float* p) { return *reinterpret_cast<const f32x16*>(p); }  // p aligned to 64 bytes
static inline void store(float* p, f32x16 v) { *reinterpret_cast<f32x16*>(p) = v; }
static inline f32x16 max(f32x16 a, f32x16 b) { return a > b ? a : b; }
static inline f32x16 min(f32x16 a, f32x16 b) { return a < b ? a : b; }

// True if any lane of a mask (0 or -1 per lane) is set.
static inline bool any(i32x16 mask) {
#if defined(__AVX512F__)
  return _mm512_test_epi32_mask(reinterpret_cast<__m512i>(mask), reinterpret_cast<__m512i>(mask)) != 0;
#else
  typedef int64_t i64x8 __attribute__((vector_size(64)));
  const i64x8 m = reinterpret_cast<i64x8>(mask);
  return ((m[0] | m[1]) | (m[2] | m[3]) | (m[4] | m[5]) | (m[6] | m[7])) != 0;
#endif
}

static inline bool all(i32x16 mask) { return !any(~mask); }

}  // namespace lt::LT_ISA
