#include "kernels/tfidf_terms.h"

#include <bit>
#include <stdexcept>

namespace lt {

TermTable::TermTable(const TermsView& terms) : terms_(terms) {
  if (terms.n >= int64_t{UINT32_MAX}) throw std::invalid_argument("too many terms: at most 2^32 - 2");
  slots_.assign(std::bit_ceil(static_cast<uint64_t>(terms.n + terms.n / 2 + 1)), 0);
  mask_ = slots_.size() - 1;
  constexpr int64_t kAhead = 32;
  uint64_t hashes[kAhead] = {};
  for (int64_t i = 0; i < terms.n + kAhead; ++i) {
    uint64_t& hash = hashes[i % kAhead];
    if (i >= kAhead) {
      const int64_t term = i - kAhead;
      uint64_t at = hash & mask_;
      while (slots_[at] != 0) at = (at + 1) & mask_;
      slots_[at] = (hash >> 32) << 32 | static_cast<uint64_t>(term + 1);
    }
    if (i < terms.n) {
      hash = hash_bytes(terms.bytes + terms.offsets[i], terms.offsets[i + 1] - terms.offsets[i]);
      __builtin_prefetch(&slots_[hash & mask_], 1);
    }
  }
}

int64_t TermTable::find(const uint8_t* bytes, int64_t length) const {
  return find(bytes, length, hash_bytes(bytes, length));
}

int64_t TermTable::find(const uint8_t* bytes, int64_t length, uint64_t hash) const {
  for (uint64_t at = hash & mask_;; at = (at + 1) & mask_) {
    const uint32_t term = candidate(hash, at);
    if (term == 0) return -1;
    if (equal(term - 1, bytes, length)) return term - 1;
  }
}

}  // namespace lt
