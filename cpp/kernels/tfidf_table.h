// The growing hash tables behind counting: open addressing, linear probing, slots side by side.
//
// A slot's place is given by the top bits of its hash, so doubling a table walks both copies from front to back.
// Batches of lookups are announced first (prefetch) and done second, which hides most of the time that memory takes.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <new>
#include <utility>

#include "kernels/tfidf_hash.h"

namespace lt {

// Zeroed memory straight from the system, in large pages where it has them; all of it goes back when it is freed.
template <class Slot>
class Slots {
 public:
  Slots() = default;
  explicit Slots(uint64_t n) : bytes_(n * sizeof(Slot)) {
    void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
    if (bytes_ >= uint64_t{1} << 22) madvise(memory, bytes_, MADV_HUGEPAGE);
#endif
    data_ = static_cast<Slot*>(memory);
  }
  Slots(Slots&& other) noexcept : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Slots& operator=(Slots&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Slots() {
    if (data_) munmap(data_, bytes_);
  }
  Slot& operator[](uint64_t i) { return data_[i]; }

 private:
  Slot* data_ = nullptr;
  uint64_t bytes_ = 0;
};

// Slot: a struct with `id` (0 in an empty slot) and `hash()`.
template <class Slot>
class Table {
 public:
  // Makes room for n more.
  void reserve(uint64_t n) {
    if (size_ == 0 || (used_ + n) * 3 > size_ * 2) grow(n);
  }
  void prefetch(uint64_t hash) { __builtin_prefetch(&slots_[hash >> shift_], 1); }

  // The slot for which same(slot) holds, or the empty one where it belongs: fill it and call added().
  template <class Same>
  Slot& find(uint64_t hash, Same&& same) {
    for (uint64_t at = hash >> shift_;; at = (at + 1) & (size_ - 1)) {
      Slot& slot = slots_[at];
      if (slot.id == 0 || same(slot)) return slot;
    }
  }
  void added() { ++used_; }
  void free() { *this = Table(); }

 private:
  void grow(uint64_t n) {
    const uint64_t size = std::bit_ceil(std::max<uint64_t>(256, (used_ + n) * 3 / 2 + 1));
    Slots<Slot> grown(size);
    const int shift = 64 - std::countr_zero(size);
    for (uint64_t i = 0; i < size_; ++i) {
      if (slots_[i].id == 0) continue;
      uint64_t at = slots_[i].hash() >> shift;
      while (grown[at].id != 0) at = (at + 1) & (size - 1);
      grown[at] = slots_[i];
    }
    slots_ = std::move(grown);
    size_ = size;
    shift_ = shift;
  }
  Slots<Slot> slots_;
  uint64_t size_ = 0, used_ = 0;
  int shift_ = 63;
};

// A token: its bytes, if at most 16, else a hash of them, told apart by a byte that UTF-8 does not have.
struct WordKey {
  uint64_t lo, hi;
  bool is_long() const { return hi >> 56 == 0xFF; }
  uint64_t hash() const { return mix(lo ^ kSeedA, hi ^ kSeedB); }
  bool operator==(const WordKey&) const = default;

  // Reads 16 bytes whatever the length.
  static WordKey of(const uint8_t* bytes, int64_t length) {
    if (length > 16) {
      const uint64_t h = hash_bytes(bytes, length);
      return {h, 0xFFull << 56 | mix(h, kSeedA) >> 8};
    }
    const auto low_bytes = [](uint64_t x, int64_t n) { return n >= 8 ? x : x & ((uint64_t{1} << 8 * n) - 1); };
    return {low_bytes(load64(bytes), length), length > 8 ? low_bytes(load64(bytes + 8), length - 8) : 0};
  }
};

struct WordSlot {
  WordKey key;
  uint32_t id, seat;   // seat: see NgramCounter
  uint32_t word, pad;  // number of the word
  uint64_t hash() const { return key.hash(); }
};

// An n-gram: the n-gram before its last token, and that token.
struct PairSlot {
  uint32_t prefix, token, id, seat;
  static uint64_t hash(uint32_t prefix, uint32_t token) {
    return mix((uint64_t{prefix} << 32 | token) ^ kSeedA, kSeedB);
  }
  uint64_t hash() const { return hash(prefix, token); }
};

}  // namespace lt
