// Memory for vectors, aligned to a page at least. A large block asks for huge pages: a solver reads lines of weights
// from all over a few megabytes, and pages of 4 KiB are slow to be handed out and to be found again.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace lt {

struct FreeBlock {
  void operator()(void* p) const { std::free(p); }
};

template <class T>
using AlignedBlock = std::unique_ptr<T[], FreeBlock>;

constexpr int64_t kHugePage = int64_t{1} << 21;

// What a block of so many bytes takes: more than half a huge page is made whole.
constexpr int64_t block_bytes(int64_t bytes) {
  const int64_t unit = bytes > kHugePage / 2 ? kHugePage : 4096;
  return (bytes + unit - 1) / unit * unit;
}

// Asks for huge pages where a block has whole ones: for large memory that is about to be written for the first time. It
// is advice, which may be refused.
inline void ask_for_huge_pages([[maybe_unused]] void* memory, [[maybe_unused]] int64_t bytes) {
#ifdef MADV_HUGEPAGE
  const auto begin = (reinterpret_cast<uintptr_t>(memory) + kHugePage - 1) / kHugePage * kHugePage;
  const auto end = (reinterpret_cast<uintptr_t>(memory) + static_cast<uintptr_t>(bytes)) / kHugePage * kHugePage;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
#endif
}

// Not initialised. At least `bytes`; block_bytes(bytes) may be used.
template <class T>
AlignedBlock<T> aligned_block(int64_t bytes) {
  const int64_t whole = block_bytes(bytes > 0 ? bytes : 1);
  const bool huge = whole >= kHugePage;
  void* memory = std::aligned_alloc(static_cast<size_t>(huge ? kHugePage : 4096), static_cast<size_t>(whole));
  if (!memory) throw std::bad_alloc();
  if (huge) ask_for_huge_pages(memory, whole);
  return AlignedBlock<T>(static_cast<T*>(memory));
}

}  // namespace lt
