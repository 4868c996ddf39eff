// Memory for vectors, aligned to a cache line at least. A large block asks for huge pages: where a solver reads lines
// of weights from all over a few megabytes, looking up pages of 4 KiB costs as much as the lines.
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

// Not initialised. At least `bytes`; block_bytes(bytes) may be used.
template <class T>
AlignedBlock<T> aligned_block(int64_t bytes) {
  const int64_t whole = block_bytes(bytes > 0 ? bytes : 1);
  const bool huge = whole >= kHugePage;
  void* memory = std::aligned_alloc(static_cast<size_t>(huge ? kHugePage : 4096), static_cast<size_t>(whole));
  if (!memory) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
  if (huge) madvise(memory, static_cast<size_t>(whole), MADV_HUGEPAGE);  // advice: it may be refused
#endif
  return AlignedBlock<T>(static_cast<T*>(memory));
}

}  // namespace lt
