// One register of the instruction set that the including file is compiled for. For *.simd.cpp files alone.
#pragma once

namespace lt::LT_ISA {

#if defined(__AVX512F__)
constexpr int kLanes = 16;
#elif defined(__AVX2__)
constexpr int kLanes = 8;
#else
constexpr int kLanes = 4;
#endif
typedef float Register __attribute__((vector_size(4 * kLanes), aligned(4)));

}  // namespace lt::LT_ISA
