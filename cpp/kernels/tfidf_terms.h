// A fixed set of terms, looked up by their bytes: the vocabulary when texts are transformed, and lists of stop words.
//
// The terms stay where they are (one array of bytes, one of offsets: they may be memory-mapped); the table adds one
// word of 8 bytes a slot. A slot holds 32 bits of the hash and the number of the term plus one; what matches is
// compared byte by byte, so a lookup is exact.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "kernels/tfidf_hash.h"

namespace lt {

struct TermsView {
  const uint8_t* bytes = nullptr;
  const int64_t* offsets = nullptr;  // (n + 1) term i is bytes[offsets[i] .. offsets[i + 1])
  int64_t n = 0;
};

class TermTable {
 public:
  TermTable() = default;
  // Offsets must ascend. Of equal terms the first is found. At most 2^32 - 2 terms.
  explicit TermTable(const TermsView& terms);

  // The number of the term, or -1.
  int64_t find(const uint8_t* bytes, int64_t length) const;

  // A range of bytes in the tokens of a text, on its way through find_all.
  struct Query {
    int64_t begin, end;
    uint64_t hash;
  };

  static constexpr int64_t kBatch = 256;

  // Calls found(term) for every one of at most kBatch queries, in order, whose bytes are a term. All queries move
  // forward together, one memory access at a time, so that the accesses overlap.
  template <class Found>
  void find_all(const uint8_t* text, Query* queries, int64_t n, Found&& found) const;

 private:
  // The number plus one of the first term at or after slot `at` whose part of the hash agrees; 0 at an empty slot.
  uint32_t candidate(uint64_t hash, uint64_t& at) const {
    for (;; at = (at + 1) & mask_) {
      const uint64_t slot = slots_[at];
      if (slot == 0 || slot >> 32 == hash >> 32) return static_cast<uint32_t>(slot);
    }
  }
  bool equal(int64_t term, const uint8_t* bytes, int64_t length) const {
    const int64_t begin = terms_.offsets[term];
    return terms_.offsets[term + 1] - begin == length && std::memcmp(terms_.bytes + begin, bytes, length) == 0;
  }
  int64_t find(const uint8_t* bytes, int64_t length, uint64_t hash) const;

  TermsView terms_;
  std::vector<uint64_t> slots_;
  uint64_t mask_ = 0;
};

template <class Found>
void TermTable::find_all(const uint8_t* text, Query* queries, int64_t n, Found&& found) const {
  uint32_t guess[kBatch];
  const auto length = [&](int64_t i) { return queries[i].end - queries[i].begin; };
  for (int64_t i = 0; i < n; ++i) {
    queries[i].hash = hash_bytes(text + queries[i].begin, length(i));
    __builtin_prefetch(&slots_[queries[i].hash & mask_]);
  }
  for (int64_t i = 0; i < n; ++i) {
    uint64_t at = queries[i].hash & mask_;
    guess[i] = candidate(queries[i].hash, at);
    if (guess[i]) __builtin_prefetch(terms_.offsets + guess[i] - 1);
  }
  for (int64_t i = 0; i < n; ++i)
    if (guess[i]) __builtin_prefetch(terms_.bytes + terms_.offsets[guess[i] - 1]);
  for (int64_t i = 0; i < n; ++i) {
    if (!guess[i]) continue;
    const uint8_t* bytes = text + queries[i].begin;
    const int64_t term = equal(guess[i] - 1, bytes, length(i)) ? guess[i] - 1 : find(bytes, length(i), queries[i].hash);
    if (term >= 0) found(term);
  }
}

}  // namespace lt
