#include "kernels/text/xc_write.h"

#include <algorithm>
#include <charconv>

#include "kernels/base/parallel.h"
#include "kernels/text/decimal.h"

namespace lt {

namespace {

constexpr int kIndexText = 11;  // an int32 and a separator

char* write_index(char* out, int32_t index) { return std::to_chars(out, out + kIndexText, index).ptr; }

}  // namespace

void xc_write_rows(const CsrView* labels, const CsrView& entries, int64_t begin, int64_t end, GrowingArray<char>& out) {
  for (int64_t row = begin; row < end; ++row) {
    const int64_t n_labels = labels ? labels->row_nnz(row) : 0;
    out.reserve(out.size + n_labels * kIndexText + entries.row_nnz(row) * (kIndexText + 1 + kFloatText) + 1);
    char* p = out.data() + out.size;
    for (int64_t i = 0; i < n_labels; ++i) {
      if (i > 0) *p++ = ',';
      p = write_index(p, labels->indices[labels->begin(row) + i]);
    }
    for (int64_t i = entries.begin(row); i < entries.end(row); ++i) {
      if (labels || i > entries.begin(row)) *p++ = ' ';  // a line that starts with a space has no labels
      p = write_index(p, entries.indices[i]);
      *p++ = ':';
      p = write_float(p, entries.values[i]);
    }
    *p++ = '\n';
    out.size = p - out.data();
  }
}

std::vector<GrowingArray<char>> xc_write_parts(const CsrView* labels, const CsrView& entries, int64_t begin,
                                               int64_t end, int n_threads) {
  constexpr int64_t kParts = 32;
  const int64_t n = end - begin, n_parts = std::min(kParts, n);
  std::vector<GrowingArray<char>> parts(n_parts);
  parallel_for(n_parts, n_threads, [&](int64_t part, int) {
    xc_write_rows(labels, entries, begin + n * part / n_parts, begin + n * (part + 1) / n_parts, parts[part]);
  });
  return parts;
}

}  // namespace lt
