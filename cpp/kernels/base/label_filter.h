// Which labels may be answered: allow and deny lists, shared by all rows or one per row.
//
// Inside a kernel a filter is a bit per position (label, or leaf of a tree). Lists cost one write per id and a pass
// over L / 64 words, so that a list of half the labels is as welcome as a list of three.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

namespace lt {

// Lists of label ids, one behind the other.
struct LabelLists {
  const int64_t* ptr = nullptr;  // (n_lists + 1), null for no lists
  const int32_t* ids = nullptr;
  const uint8_t* open = nullptr;  // (n_lists), or null: lists that do not count, as if they were not given
  bool shared = false;            // one list for all rows

  bool per_row() const { return ptr && !shared; }
  int64_t row(int64_t i) const { return shared ? 0 : i; }
  bool given(int64_t i) const { return ptr && !(open && open[row(i)]); }
};

struct LabelFilter {
  LabelLists include;  // what may be answered; without it, everything
  LabelLists exclude;  // what may not

  bool present() const { return include.ptr || exclude.ptr; }
  bool per_row() const { return include.per_row() || exclude.per_row(); }
};

// Throws std::invalid_argument unless there are lists for n_rows rows, or one for all, of ids in [0, n_labels).
void check_lists(const LabelLists& lists, int64_t n_lists, int64_t n_ids, int64_t n_rows, int64_t n_labels);

class Bits {
 public:
  void assign(int64_t n, bool value);
  bool operator[](int64_t i) const { return words_[i >> 6] >> (i & 63) & 1; }
  void set(int64_t i) { words_[i >> 6] |= uint64_t{1} << (i & 63); }
  void clear(int64_t i) { words_[i >> 6] &= ~(uint64_t{1} << (i & 63)); }
  int64_t size() const { return n_; }

  // Number of set bits in [begin, end), counted no further than `enough`.
  int64_t count(int64_t begin, int64_t end, int64_t enough) const;
  bool any(int64_t begin, int64_t end) const { return count(begin, end, 1) > 0; }

 private:
  int64_t n_ = 0;
  std::vector<uint64_t> words_;
};

// Where the bit of a label is. A label may have no position (-1, or beyond the end): nothing can answer with it.
struct Positions {
  int64_t n = 0;                // number of positions
  const int32_t* of = nullptr;  // (n_labels), or null where a label is its own position
  int64_t n_labels = 0;         // length of `of`
};

// What the lists shared by all rows allow.
void shared_bits(const LabelFilter& filter, const Positions& positions, Bits& bits);

// What one row may be answered with, given the above.
void row_bits(const LabelFilter& filter, int64_t row, const Bits& shared, const Positions& positions, Bits& bits);

}  // namespace lt
