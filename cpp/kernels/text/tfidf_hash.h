// Hash functions over the bytes of tokens and n-grams. None of them decides a result by itself: tables compare the
// bytes as well. The exception is murmur3, which names the column of an n-gram in hashing mode, as it does in
// scikit-learn.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

namespace lt {

static_assert(std::endian::native == std::endian::little, "bytes are loaded as words in little-endian order");

inline uint64_t load64(const uint8_t* p) {
  uint64_t x;
  std::memcpy(&x, p, 8);
  return x;
}

inline uint32_t load32(const uint8_t* p) {
  uint32_t x;
  std::memcpy(&x, p, 4);
  return x;
}

// Both halves of the product, so that every bit of a and b reaches every bit of the result.
inline uint64_t mix(uint64_t a, uint64_t b) {
  const unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

// The top bytes of these are no bytes of UTF-8, so a text cannot cancel them.
constexpr uint64_t kSeedA = 0xFEC5A7F1B3D94E6B, kSeedB = 0xFD8E2B6C59A1743D;

inline uint64_t hash_bytes(const uint8_t* p, int64_t n) {
  uint64_t a, b, h = kSeedA ^ static_cast<uint64_t>(n);
  if (n >= 16) {
    for (int64_t i = 0; i + 16 < n; i += 16) h = mix(load64(p + i) ^ h, load64(p + i + 8) ^ kSeedB);
    a = load64(p + n - 16);  // the end once more where it overlaps: every byte counts and none beyond is read
    b = load64(p + n - 8);
  } else if (n >= 8) {
    a = load64(p);
    b = load64(p + n - 8);
  } else if (n >= 4) {
    a = load32(p);
    b = load32(p + n - 4);
  } else {
    a = n > 0 ? uint64_t{p[0]} << 16 | uint64_t{p[n >> 1]} << 8 | p[n - 1] : 0;
    b = 0;
  }
  return mix(a ^ h, b ^ kSeedB);
}

// MurmurHash3 (x86, 32 bits, seed 0) by Austin Appleby, who placed it in the public domain.
inline uint32_t murmur3(const uint8_t* p, int64_t n) {
  const auto rotate = [](uint32_t x, int by) { return x << by | x >> (32 - by); };
  const auto scramble = [&](uint32_t k) { return rotate(k * 0xCC9E2D51u, 15) * 0x1B873593u; };
  uint32_t h = 0;
  int64_t i = 0;
  for (; i + 4 <= n; i += 4) h = rotate(h ^ scramble(load32(p + i)), 13) * 5 + 0xE6546B64u;
  uint32_t tail = 0;
  for (int64_t j = n - 1; j >= i; --j) tail = tail << 8 | p[j];
  if (n > i) h ^= scramble(tail);
  h ^= static_cast<uint32_t>(n);
  h = (h ^ h >> 16) * 0x85EBCA6Bu;
  h = (h ^ h >> 13) * 0xC2B2AE35u;
  return h ^ h >> 16;
}

// Column of an n-gram in hashing mode: scikit-learn's, |signed hash| mod n_features.
inline uint32_t hashed_column(const uint8_t* p, int64_t n, uint32_t n_features) {
  const uint32_t h = murmur3(p, n);
  return (h >> 31 ? 0u - h : h) % n_features;
}

}  // namespace lt
