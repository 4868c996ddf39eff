// The hash tables of tokens and n-grams: open addressing, linear probing, slots side by side.
//
// Every n-gram is a node of a tree and has a number: a token is a node below the root, a longer n-gram is the node of
// its prefix (all but the last token) extended by a token. So only tokens are compared as bytes; an n-gram of any
// length is a pair of numbers. All comparisons are exact: a hash only says where to look.
//
// A slot's place is given by the top bits of its hash, so doubling a table walks both copies from front to back.
// Lookups come in batches, announced first (prefetch) and done second, which hides most of the time that memory takes.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <utility>

#include "kernels/text/tfidf_hash.h"

namespace lt {

// Numbers of nodes: 0 is none (the root), tokens count from 1, longer n-grams have the top bit set.
constexpr uint32_t kPairBit = 1u << 31;

// A token by its bytes, if at most 16, else by a hash of them, told apart by a byte that UTF-8 does not have.
struct WordKey {
  uint64_t lo, hi;
  bool is_long() const { return hi >> 56 == 0xFF; }
  uint64_t hash() const { return mix(lo ^ kSeedA, hi ^ kSeedB); }
  bool operator==(const WordKey&) const = default;

  // `of_padded` reads 16 bytes whatever the length, `of` no more than there are.
  static WordKey of_padded(const uint8_t* bytes, int64_t length) {
    if (length > 16) {
      const uint64_t h = hash_bytes(bytes, length);
      return {h, 0xFFull << 56 | mix(h, kSeedA) >> 8};
    }
    // The low n bytes, n from 0 to 8, by two shifts: one by 64 would be none.
    const auto low_bytes = [](uint64_t x, int64_t n) { return x & ~(~uint64_t{0} << 4 * n << 4 * n); };
    const int64_t first = std::min<int64_t>(length, 8);
    return {low_bytes(load64(bytes), first), low_bytes(load64(bytes + 8), length - first)};
  }
  static WordKey of(const uint8_t* bytes, int64_t length) {
    uint8_t padded[16] = {};
    if (length <= 16) std::memcpy(padded, bytes, length);
    return of_padded(length <= 16 ? padded : bytes, length);
  }
};

inline uint64_t hash_pair(uint32_t prefix, uint32_t token) {
  return mix((uint64_t{prefix} << 32 | token) ^ kSeedA, kSeedB);
}

// Slots are empty while `id` is 0. The payload, 4 bytes, is the user's.
template <class Payload>
struct WordSlot {
  WordKey key;
  uint32_t id;
  Payload payload;
  uint64_t hash() const { return key.hash(); }
};

template <class Payload>
struct PairSlot {
  uint32_t prefix, token, id;
  Payload payload;
  uint64_t hash() const { return hash_pair(prefix, token); }
  bool is(uint32_t p, uint32_t t) const { return prefix == p && token == t; }
};
static_assert(sizeof(PairSlot<uint32_t>) == 16);  // four to a cache line

// Zeroed memory. Large tables come straight from the system, in large pages where it has them, and go back whole.
template <class Slot>
class Slots {
 public:
  Slots() = default;
  explicit Slots(uint64_t n) : n_(n) {
    void* memory = mapped() ? mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                            : std::calloc(n, sizeof(Slot));
    if (memory == MAP_FAILED || memory == nullptr) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
    if (mapped()) madvise(memory, bytes(), MADV_HUGEPAGE);
#endif
    data_ = static_cast<Slot*>(memory);
  }
  Slots(Slots&& other) noexcept : data_(std::exchange(other.data_, nullptr)), n_(std::exchange(other.n_, 0)) {}
  Slots& operator=(Slots&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(n_, other.n_);
    return *this;
  }
  ~Slots() { mapped() ? void(munmap(data_, bytes())) : std::free(data_); }

  uint64_t size() const { return n_; }
  Slot& operator[](uint64_t i) { return data_[i]; }
  const Slot& operator[](uint64_t i) const { return data_[i]; }

 private:
  uint64_t bytes() const { return n_ * sizeof(Slot); }
  bool mapped() const { return bytes() >= uint64_t{1} << 22; }
  Slot* data_ = nullptr;
  uint64_t n_ = 0;
};

template <class Slot>
class Table {
 public:
  // Makes room for n more.
  void reserve(uint64_t n) {
    if ((used_ + n) * 3 > slots_.size() * 2) grow(n);
  }
  void prefetch(uint64_t hash) const { __builtin_prefetch(&slots_[hash >> shift_], 1); }

  // The slot for which same(slot) holds, or the empty one where it belongs: fill it and call added(). A table needs to
  // be given room before anything is looked up in it.
  template <class Same>
  Slot& find(uint64_t hash, Same&& same) {
    for (uint64_t at = hash >> shift_;; at = (at + 1) & (slots_.size() - 1)) {
      Slot& slot = slots_[at];
      if (slot.id == 0 || same(slot)) return slot;
    }
  }
  template <class Same>
  const Slot& find(uint64_t hash, Same&& same) const {
    return const_cast<Table*>(this)->find(hash, same);
  }
  void added() { ++used_; }

  template <class Visit>
  void for_each(Visit&& visit) const {
    for (uint64_t i = 0; i < slots_.size(); ++i)
      if (slots_[i].id != 0) visit(slots_[i]);
  }

 private:
  void grow(uint64_t n) {
    const uint64_t size = std::bit_ceil(std::max<uint64_t>(64, (used_ + n) * 3 / 2 + 1));
    Slots<Slot> grown(size);
    const int shift = 64 - std::countr_zero(size);
    for_each([&](const Slot& slot) {
      uint64_t at = slot.hash() >> shift;
      while (grown[at].id != 0) at = (at + 1) & (size - 1);
      grown[at] = slot;
    });
    slots_ = std::move(grown);
    shift_ = shift;
  }
  Slots<Slot> slots_;
  uint64_t used_ = 0;
  int shift_ = 63;
};

}  // namespace lt
