// MurmurHash3 (x86, 32 bits; Appleby, public domain) of a 32-bit integer: the label hash of MACH.
#pragma once

#include <cstdint>

namespace lt {

inline uint32_t rotate_left(uint32_t x, int bits) { return (x << bits) | (x >> (32 - bits)); }

inline uint32_t murmur3(uint32_t key, uint32_t seed) {
  uint32_t h = seed ^ (rotate_left(key * 0xCC9E2D51u, 15) * 0x1B873593u);
  h = rotate_left(h, 13) * 5 + 0xE6546B64u;
  h ^= 4;  // length of the key in bytes
  h = (h ^ (h >> 16)) * 0x85EBCA6Bu;
  h = (h ^ (h >> 13)) * 0xC2B2AE35u;
  return h ^ (h >> 16);
}

}  // namespace lt
