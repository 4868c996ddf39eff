// Coverage-guided fuzzing of the text formats' kernels; see README.md here for how to run it.
//
// The first four bytes of an input choose what is read and how it is cut; the rest is the text. Beyond what the
// sanitizers see, a run fails if
//   - two ways of cutting the text, with one and with two threads, differ in the result or in the error,
//   - a result breaks its promises (sorted, in range, finite),
//   - a result, written and read again, is not the same bits,
//   - the quick way of reading a number and the general one disagree.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "kernels/text/pair_lines.h"
#include "kernels/text/xc_parse.h"
#include "kernels/text/xc_write.h"

namespace {

using namespace lt;

void check(bool condition) {
  if (!condition) std::abort();
}

// A text with a line end and padding, in a block of exactly that size, so that reading beyond is caught.
struct Text {
  std::unique_ptr<char[]> bytes;
  int64_t size;

  Text(const char* data, int64_t n) : size(n) {
    const bool add_end = n > 0 && data[n - 1] != '\n';
    bytes.reset(new char[n + add_end + kTextPadding]);
    if (n > 0) std::memcpy(bytes.get(), data, n);
    if (add_end) bytes[size++] = '\n';
    std::memset(bytes.get() + size, '7', kTextPadding);  // digits: what a careless reader would go on with
  }
  const char* begin() const { return bytes.get(); }
  const char* end() const { return bytes.get() + size; }
};

template <class T>
bool same(const GrowingArray<T>& a, const GrowingArray<T>& b) {
  return a.size == b.size && (a.size == 0 || std::memcmp(a.data(), b.data(), a.size * sizeof(T)) == 0);
}

bool same(const XcRows& a, const XcRows& b) {
  return same(a.columns, b.columns) && same(a.values, b.values) && same(a.labels, b.labels) &&
         same(a.column_end, b.column_end) && same(a.label_end, b.label_end) && a.width == b.width &&
         a.label_width == b.label_width;
}

bool same(const std::optional<TextError>& a, const std::optional<TextError>& b) {
  return a.has_value() == b.has_value() &&
         (!a || (a->line == b->line && a->column == b->column && a->message == b->message));
}

// Feeds the text in two blocks, cut at the line end after `cut`.
std::optional<TextError> parse(XcParser& parser, const Text& text, int64_t cut, int n_threads, int64_t chunk_bytes) {
  const char* middle = cut < text.size ? line_after(text.begin() + cut, text.end()) : text.end();
  if (auto error = xc_parse(parser, text.begin(), middle, n_threads, chunk_bytes)) return error;
  xc_expect(parser, middle - text.begin(), text.size);
  return xc_parse(parser, middle, text.end(), n_threads, chunk_bytes);
}

void check_sorted(const GrowingArray<int64_t>& end, const GrowingArray<int32_t>& indices, int64_t limit) {
  int64_t begin = 0;
  for (int64_t row = 0; row < end.size; ++row) {
    check(end[row] >= begin && end[row] <= indices.size);
    for (int64_t i = begin; i < end[row]; ++i) {
      check(indices[i] >= 0 && indices[i] < limit);
      check(i == begin || indices[i] > indices[i - 1]);
    }
    begin = end[row];
  }
  check(begin == indices.size);
}

CsrView view(const std::vector<int64_t>& indptr, const GrowingArray<int32_t>& indices, const float* values) {
  return {static_cast<int64_t>(indptr.size()) - 1, kMaxColumns, indptr.data(), indices.data(), values};
}

std::vector<int64_t> offsets(const GrowingArray<int64_t>& end) {
  std::vector<int64_t> out{0};
  out.insert(out.end(), end.data(), end.data() + end.size);
  return out;
}

void check_round_trip(const XcParser& parser) {
  const XcRows& rows = parser.rows;
  const auto indptr = offsets(rows.column_end), label_indptr = offsets(rows.label_end);
  const CsrView entries = view(indptr, rows.columns, rows.values.data());
  const CsrView labels = view(label_indptr, rows.labels, nullptr);
  GrowingArray<char> written;
  xc_write_rows(parser.spec.labelled ? &labels : nullptr, entries, 0, rows.n_rows(), written);
  const Text text(written.data(), written.size);
  XcParser again;
  again.spec = parser.spec;
  check(!xc_parse(again, text.begin(), text.end(), 1));
  check(same(again.rows, rows));
}

void fuzz_rows(const uint8_t* options, const Text& text) {
  XcSpec spec;
  spec.labelled = options[0] & 1;
  spec.unit_values = options[0] & 2;
  if (options[0] & 4) spec.n_rows = options[1] & 15;
  if (options[0] & 8) spec.n_columns = options[1];
  if (options[0] & 16) spec.n_labels = options[1];
  XcParser one, two;
  one.spec = two.spec = spec;
  const auto error = parse(one, text, text.size, 1, 1 << 18);
  const auto other = parse(two, text, options[2], 2, options[3]);
  check(same(error, other));
  if (error) {
    check(error->line >= 1 && error->column >= 1 && !error->message.empty());
    return;
  }
  check(same(one.rows, two.rows));
  check(one.rows.columns.size == one.rows.values.size && one.rows.column_end.size == one.rows.label_end.size);
  check(spec.n_rows < 0 || one.rows.n_rows() <= spec.n_rows);
  check_sorted(one.rows.column_end, one.rows.columns, spec.n_columns);
  check_sorted(one.rows.label_end, one.rows.labels, spec.n_labels);
  for (int64_t i = 0; i < one.rows.values.size; ++i) {
    const float value = one.rows.values[i];
    check(std::isfinite(value) && (!spec.unit_values || (value >= 0 && value <= 1)));
  }
  xc_drop_empty_end(one.rows);
  check_round_trip(one);
}

void fuzz_pairs(const uint8_t* options, const Text& text) {
  PairLines pairs;
  if (options[0] & 4) pairs.n_rows = options[1];
  if (options[0] & 8) pairs.n_labels = options[2];
  if (const auto error = parse_pair_lines(pairs, text.begin(), text.end())) {
    check(error->line >= 1 && error->column >= 1);
    return;
  }
  check(pairs.pairs.size % 2 == 0);
  for (int64_t i = 0; i < pairs.pairs.size; ++i)
    check(pairs.pairs[i] >= 0 && pairs.pairs[i] < (i % 2 ? pairs.n_labels : pairs.n_rows));
}

void fuzz_number(const Text& text) {
  if (text.size == 0) return;
  float quick = 0, general = 0;
  int length = 1;
  const char* end = read_float(text.begin(), &quick, length);
  const char* general_end = read_float_general(text.begin(), &general);
  if (!general_end || !std::isfinite(general)) {
    check(!end);
    return;
  }
  check(end == general_end && std::memcmp(&quick, &general, sizeof quick) == 0);
  if (*end == 'x' || *end == 'X') return;  // the C library would read a hexadecimal number
  char* own_end = nullptr;
  const float own = std::strtof(text.begin(), &own_end);  // the C library's, in the C locale
  check(own_end == end && std::memcmp(&quick, &own, sizeof quick) == 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 4) return 0;
  const Text text(reinterpret_cast<const char*>(data) + 4, static_cast<int64_t>(size) - 4);
  switch (data[0] >> 6) {
    case 0:
    case 1:
      fuzz_rows(data, text);
      break;
    case 2:
      fuzz_pairs(data, text);
      break;
    default:
      fuzz_number(text);
  }
  return 0;
}
