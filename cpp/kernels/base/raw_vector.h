// A vector whose new elements are not initialised: for arrays that are written as soon as they are made. A large one
// lies in huge pages.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/base/aligned_block.h"

namespace lt {

template <class T>
struct RawAllocator {
  static_assert(std::is_trivially_copyable_v<T>);
  using value_type = T;

  RawAllocator() = default;
  template <class U>
  RawAllocator(const RawAllocator<U>&) {}

  T* allocate(size_t n) {
    if (n > static_cast<size_t>(INT64_MAX) / sizeof(T)) throw std::bad_array_new_length();
    const auto bytes = static_cast<int64_t>(n * sizeof(T));
    void* memory = bytes < kSmall ? std::malloc(n * sizeof(T)) : aligned_block<char>(bytes).release();
    if (!memory) throw std::bad_alloc();
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, size_t) { std::free(memory); }

  template <class U>
  void construct(U* at) {
    ::new (static_cast<void*>(at)) U;  // not U(), which would be zero
  }
  template <class U, class... Values>
  void construct(U* at, Values&&... values) {
    ::new (static_cast<void*>(at)) U(std::forward<Values>(values)...);
  }

  bool operator==(const RawAllocator&) const { return true; }

 private:
  static constexpr int64_t kSmall = int64_t{1} << 16;  // bytes: fewer need no pages of their own
};

template <class T>
using RawVector = std::vector<T, RawAllocator<T>>;

}  // namespace lt
