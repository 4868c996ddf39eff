// An array that grows to a size nobody knows in advance, without ever being held twice.
//
// std::vector would hold the old and the new block at once, and write zeros first. Here, on Linux, a large block grows
// by moving its page tables (mremap), not its bytes; room that is reserved and never written takes address space only;
// and large blocks ask for huge pages, since touching fresh memory 4 KiB at a time costs as much as parsing into it.
// Elsewhere, and for small blocks, it is realloc.
#pragma once

#include <cstdint>
#include <new>
#include <type_traits>
#include <utility>

namespace lt {

// Resizes a block (null: of 0 bytes) and keeps what fits of its content. Throws std::bad_alloc and leaves it as it was.
void* resize_block(void* block, int64_t old_bytes, int64_t new_bytes);
void free_block(void* block, int64_t bytes) noexcept;

template <class T>
class GrowingArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  int64_t size = 0;  // entries in use; set it freely up to what is reserved

  GrowingArray() = default;
  GrowingArray(GrowingArray&& other) noexcept { *this = std::move(other); }
  GrowingArray& operator=(GrowingArray&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(capacity_, other.capacity_);
    std::swap(size, other.size);
    return *this;
  }
  ~GrowingArray() { free_block(data_, capacity_ * static_cast<int64_t>(sizeof(T))); }

  T* data() const { return data_; }
  T& operator[](int64_t i) const { return data_[i]; }

  // Room for at least n entries; what lies beyond `size` is not initialised.
  void reserve(int64_t n) {
    if (n > capacity_) set_capacity(n > capacity_ + capacity_ / 2 ? n : capacity_ + capacity_ / 2);
  }

  // Gives unused room back.
  void shrink() {
    if (capacity_ > size) set_capacity(size);
  }

 private:
  void set_capacity(int64_t n) {
    constexpr int64_t kBytes = sizeof(T);
    if (n > INT64_MAX / kBytes) throw std::bad_alloc();
    data_ = static_cast<T*>(resize_block(data_, capacity_ * kBytes, n * kBytes));
    capacity_ = n;
  }

  T* data_ = nullptr;
  int64_t capacity_ = 0;
};

}  // namespace lt
