#include "kernels/text/pair_lines.h"

#include <string>

namespace lt {

namespace {

const char* read_member(const char* p, const char* noun, int64_t limit, int64_t* out) {
  const char* start = p;
  int length = 1;
  uint32_t value = 0;
  p = read_index(p, &value, length);
  if (p == start) scan_failed(p, std::string("expected a ") + noun + " (a whole number), got " + found_at(p));
  if (value >= limit)
    scan_failed(start, std::string("expected a ") + noun + " below " + std::to_string(limit) + ", got " +
                           (p - start > 20 ? std::string(start, 17) + "..." : std::string(start, p)));
  *out = value;
  return p;
}

}  // namespace

std::optional<TextError> parse_pair_lines(PairLines& result, const char* begin, const char* end) {
  result.pairs.reserve(result.pairs.size + (end - begin) / 2 + 2);  // the shortest pair, "0 0\n", takes four bytes
  for (const char* line = begin; line < end; ++result.line) {
    const char* p = skip_blanks(line);
    int64_t* pair = result.pairs.data() + result.pairs.size;
    try {
      if (!at_line_end(p)) {
        p = read_member(p, "row", result.n_rows, pair);
        if (!is_blank(*p)) scan_failed(p, "expected a space and a label after the row, got " + found_at(p));
        p = skip_blanks(read_member(skip_blanks(p), "label", result.n_labels, pair + 1));
        if (!at_line_end(p)) scan_failed(p, "expected the end of the line after 'row label', got " + found_at(p));
        result.pairs.size += 2;
      }
    } catch (ScanFailure& failure) {
      return TextError{result.line, failure.at - line + 1, std::move(failure.message)};
    }
    line = p + 1 + (*p == '\r');
  }
  return std::nullopt;
}

}  // namespace lt
