// Memory for pieces that are written once and read once, as one phase of a kernel hands them to the next. They are cut
// from slabs of up to a few megabytes in huge pages: so many blocks of the system's allocator would be fresh pages each
// time, which take longer to be handed out than to be written. A slab goes when its last piece does. One worker takes;
// any may drop.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

#include "kernels/base/aligned_block.h"

namespace lt {

class Slabs {
 public:
  using Piece = std::shared_ptr<char[]>;

  // Not initialised, aligned to 64 bytes.
  Piece take(int64_t bytes) {
    if (bytes > size_ - used_) {
      const int64_t size = block_bytes(std::max(bytes, std::clamp(2 * size_, kFirst, kLargest)));
      slab_ = aligned_block<char>(size);
      size_ = size;
      used_ = 0;
    }
    last_ = used_;
    keep(bytes);
    return Piece(slab_, slab_.get() + last_);
  }

  // Of the piece that was taken last, which was larger, only so many bytes are used.
  void keep(int64_t bytes) { used_ = std::min(size_, last_ + (bytes + 63) / 64 * 64); }

 private:
  static constexpr int64_t kFirst = int64_t{1} << 16, kLargest = 2 * kHugePage;
  Piece slab_;
  int64_t size_ = 0, used_ = 0, last_ = 0;  // bytes: of the slab, taken from it, taken before the last piece
};

}  // namespace lt
