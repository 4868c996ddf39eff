#include "kernels/base/label_filter.h"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace lt {

void check_lists(const LabelLists& lists, int64_t n_lists, int64_t n_ids, int64_t n_rows, int64_t n_labels) {
  if (!lists.ptr) return;
  auto require = [](bool condition, const char* what) {
    if (!condition) throw std::invalid_argument(what);
  };
  require(n_lists == (lists.shared ? 1 : n_rows), "a filter needs one list for all rows, or one per row");
  require(lists.ptr[0] == 0 && lists.ptr[n_lists] == n_ids, "offsets of a filter do not fit its ids");
  for (int64_t i = 0; i < n_lists; ++i) require(lists.ptr[i] <= lists.ptr[i + 1], "offsets of a filter must ascend");
  for (int64_t p = 0; p < n_ids; ++p)
    if (lists.ids[p] < 0 || lists.ids[p] >= n_labels)
      throw std::invalid_argument("a filter names label " + std::to_string(lists.ids[p]) + ", but there are " +
                                  std::to_string(n_labels));
}

void Bits::assign(int64_t n, bool value) {
  n_ = n;
  words_.assign((n + 63) / 64, value ? ~uint64_t{0} : 0);
  if (value && n % 64) words_.back() = (uint64_t{1} << (n % 64)) - 1;
}

int64_t Bits::count(int64_t begin, int64_t end, int64_t enough) const {
  int64_t found = 0;
  while (begin < end && found < enough) {
    const int64_t offset = begin & 63, taken = std::min<int64_t>(64 - offset, end - begin);
    const uint64_t mask = taken == 64 ? ~uint64_t{0} : ((uint64_t{1} << taken) - 1) << offset;
    found += std::popcount(words_[begin >> 6] & mask);
    begin += taken;
  }
  return std::min(found, enough);
}

namespace {

template <class Body>
void each_position(const LabelLists& lists, int64_t row, const Positions& positions, const Body& body) {
  const int64_t i = lists.row(row);
  for (int64_t p = lists.ptr[i]; p < lists.ptr[i + 1]; ++p) {
    const int32_t label = lists.ids[p];
    const int64_t position = !positions.of ? label : label < positions.n_labels ? positions.of[label] : -1;
    if (position >= 0 && position < positions.n) body(position);
  }
}

}  // namespace

void shared_bits(const LabelFilter& filter, const Positions& positions, Bits& bits) {
  const bool listed = filter.include.shared && filter.include.given(0);
  bits.assign(positions.n, !listed);
  if (listed) each_position(filter.include, 0, positions, [&](int64_t i) { bits.set(i); });
  if (filter.exclude.shared && filter.exclude.given(0))
    each_position(filter.exclude, 0, positions, [&](int64_t i) { bits.clear(i); });
}

void row_bits(const LabelFilter& filter, int64_t row, const Bits& shared, const Positions& positions, Bits& bits) {
  if (filter.include.per_row() && filter.include.given(row)) {
    bits.assign(shared.size(), false);
    each_position(filter.include, row, positions, [&](int64_t i) {
      if (shared[i]) bits.set(i);
    });
  } else {
    bits = shared;
  }
  if (filter.exclude.per_row() && filter.exclude.given(row))
    each_position(filter.exclude, row, positions, [&](int64_t i) { bits.clear(i); });
}

}  // namespace lt
