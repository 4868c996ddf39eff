// One register of the instruction set that the including file is compiled for. For *.simd.cpp files alone.
#pragma once

#include <cstdint>

// Values that fill several registers are structs (lanes.h), and the calling convention passes those through memory:
// what works on them has to be inlined, or every accumulator ends on the stack.
#define LT_INLINE inline __attribute__((always_inline))

namespace lt::LT_ISA {

#if defined(__AVX512F__)
constexpr int kRegister = 16;  // floats
#elif defined(__AVX2__)
constexpr int kRegister = 8;
#else
constexpr int kRegister = 4;
#endif
typedef float f32xN __attribute__((vector_size(4 * kRegister)));
typedef int32_t i32xN __attribute__((vector_size(4 * kRegister)));
typedef float Unaligned __attribute__((vector_size(4 * kRegister), aligned(4)));

static LT_INLINE f32xN load_unaligned(const float* p) { return *reinterpret_cast<const Unaligned*>(p); }
static LT_INLINE void store_unaligned(float* p, f32xN v) { *reinterpret_cast<Unaligned*>(p) = v; }

static LT_INLINE float sum_of(f32xN v) {  // in the order of the lanes
  float total = 0;
  for (int lane = 0; lane < kRegister; ++lane) total += v[lane];
  return total;
}

}  // namespace lt::LT_ISA
