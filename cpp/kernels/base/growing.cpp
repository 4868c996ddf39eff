#include "kernels/base/growing.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace lt {

#ifdef __linux__

namespace {

constexpr int64_t kMapped = 1 << 20;  // blocks of at least so many bytes are mapped, smaller ones come from malloc

void* map_block(int64_t bytes) {
  void* block = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (block == MAP_FAILED) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
  madvise(block, bytes, MADV_HUGEPAGE);  // advice: it may be refused
#endif
  return block;
}

}  // namespace

void* resize_block(void* block, int64_t old_bytes, int64_t new_bytes) {
  if (old_bytes >= kMapped && new_bytes >= kMapped) {
    void* moved = mremap(block, old_bytes, new_bytes, MREMAP_MAYMOVE);
    if (moved == MAP_FAILED) throw std::bad_alloc();
    return moved;
  }
  if (old_bytes < kMapped && new_bytes < kMapped) {
    void* moved = std::realloc(block, std::max<int64_t>(new_bytes, 1));
    if (!moved) throw std::bad_alloc();
    return moved;
  }
  void* moved = new_bytes >= kMapped ? map_block(new_bytes) : std::malloc(std::max<int64_t>(new_bytes, 1));
  if (!moved) throw std::bad_alloc();
  if (block) std::memcpy(moved, block, std::min(old_bytes, new_bytes));
  free_block(block, old_bytes);
  return moved;
}

void free_block(void* block, int64_t bytes) noexcept {
  if (block && bytes >= kMapped)
    munmap(block, bytes);
  else
    std::free(block);
}

#else

void* resize_block(void* block, int64_t, int64_t new_bytes) {
  void* moved = std::realloc(block, std::max<int64_t>(new_bytes, 1));
  if (!moved) throw std::bad_alloc();
  return moved;
}

void free_block(void* block, int64_t) noexcept { std::free(block); }

#endif

}  // namespace lt
