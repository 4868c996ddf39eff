#include "kernels/text/xc_rows.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace lt {

namespace {

[[noreturn]] void index_failed(const char* at, const std::string& noun, int64_t limit) {
  const char* end = at;
  while (is_digit(*end)) ++end;
  const std::string digits = end - at > 20 ? std::string(at, 17) + "..." : std::string(at, end);
  const std::string reason =
      limit == kMaxColumns ? "at most " + std::to_string(kMaxColumns - 1) + " is supported"
      : limit == 0         ? "there are no " + noun + "s"
                           : "there are " + std::to_string(limit) + ", numbered 0 to " + std::to_string(limit - 1);
  scan_failed(at, noun + " " + digits + " is out of range: " + reason);
}

[[noreturn]] void value_failed(const char* at) {
  float value;
  if (read_float_general(at, &value)) scan_failed(at, "expected a number that fits float32 (at most 3.4028235e38)");
  const char* p = at + (*at == '-' || *at == '+');
  const char first = *p | 0x20;
  if (first == 'n' || first == 'i') scan_failed(at, "expected a finite number after ':', got " + word_at(at));
  scan_failed(at, "expected a number after ':', got " + word_at(at));
}

[[noreturn]] void unit_failed(const char* at, const std::string& what) {
  scan_failed(at, "expected a value between 0 and 1 for " + what);
}

// Sorts labels [begin, size) and drops repeated ones.
void sort_labels(XcRows& rows, int64_t begin) {
  int32_t* first = rows.labels.data() + begin;
  int32_t* last = rows.labels.data() + rows.labels.size;
  std::sort(first, last);
  rows.labels.size = std::unique(first, last) - rows.labels.data();
}

// Sorts entries [begin, size) by index and adds the values of a repeated one, in double and in the order of the text.
void sort_entries(const XcSpec& spec, XcRows& rows, int64_t begin, const char* line) {
  std::vector<std::pair<int32_t, float>> entries;
  for (int64_t i = begin; i < rows.columns.size; ++i) entries.emplace_back(rows.columns[i], rows.values[i]);
  std::stable_sort(entries.begin(), entries.end(), [](auto& a, auto& b) { return a.first < b.first; });
  int64_t kept = begin;
  for (size_t i = 0; i < entries.size(); ++kept) {
    const int32_t index = entries[i].first;
    double sum = entries[i].second;
    for (++i; i < entries.size() && entries[i].first == index; ++i) sum += entries[i].second;
    rows.columns[kept] = index;
    rows.values[kept] = static_cast<float>(sum);
    const bool finite = std::isfinite(rows.values[kept]);
    if (finite && !(spec.unit_values && sum > 1)) continue;
    const std::string what = spec.noun + " " + std::to_string(index) + ", listed more than once: values are added";
    if (!finite) scan_failed(line, "expected a sum that fits float32 for " + what);
    unit_failed(line, what);
  }
  rows.columns.size = rows.values.size = kept;
}

// The label list at the start of a line; returns where it ends, which is where it starts if there is none.
const char* parse_labels(const XcSpec& spec, XcRows& rows, const char* line) {
  const int64_t begin = rows.labels.size;
  int32_t* out = rows.labels.data() + begin;
  uint32_t next = 0;  // the least label that keeps the order
  bool ordered = true;
  int length = 1;
  const char* p = line;
  for (;; ++p) {
    const char* start = p;
    uint32_t label;
    p = read_index(p, &label, length);
    if (p == start) scan_failed(p, "expected a label (a whole number), got " + found_at(p));
    if (*p == ':' && start == line) return line;  // a feature: the list is empty
    if (label >= spec.n_labels) index_failed(start, "label", spec.n_labels);
    *out++ = static_cast<int32_t>(label);
    ordered &= label >= next;
    next = label + 1;
    if (*p != ',') break;
  }
  if (!is_blank(*p) && !at_line_end(p))
    scan_failed(p, "expected ',' and a label, a space and a feature, or the end of the line, got " + found_at(p));
  rows.labels.size = out - rows.labels.data();
  if (!ordered) sort_labels(rows, begin);
  rows.label_width = std::max(rows.label_width, rows.labels[rows.labels.size - 1] + int64_t{1});
  return p;
}

// Entries `index:value` from p to the line end, which is returned.
const char* parse_entries(const XcSpec& spec, XcRows& rows, const char* p, const char* line) {
  const int64_t begin = rows.columns.size;
  int32_t* column = rows.columns.data() + begin;
  float* value = rows.values.data() + begin;
  uint32_t next = 0;  // the least index that keeps the order
  bool ordered = true;
  int index_length = 1, value_length = 1;
  const bool unit_values = spec.unit_values;
  p = skip_blanks(p);
  while (!at_line_end(p)) {
    const char* start = p;
    uint32_t index;
    p = read_index(p, &index, index_length);
    if (p == start) scan_failed(p, "expected a " + spec.noun + " 'index:value', got " + found_at(p));
    if (*p != ':') scan_failed(p, "expected ':' after a " + spec.noun + " index, got " + found_at(p));
    if (index >= spec.n_columns) index_failed(start, spec.noun, spec.n_columns);
    const char* number = p + 1;
    p = read_float(number, value++, value_length);
    if (!p) value_failed(number);
    if (unit_values && !(value[-1] >= 0 && value[-1] <= 1)) unit_failed(number, "a " + spec.noun);
    *column++ = static_cast<int32_t>(index);
    ordered &= index >= next;
    next = index + 1;
    if (*p == ' ' && is_digit(p[1])) {
      ++p;
      continue;
    }
    if (!is_blank(*p) && !at_line_end(p)) scan_failed(p, "expected a space or the end of the line, got " + found_at(p));
    p = skip_blanks(p);
  }
  rows.columns.size = rows.values.size = column - rows.columns.data();
  if (!ordered) sort_entries(spec, rows, begin, line);
  if (rows.columns.size > begin) rows.width = std::max(rows.width, rows.columns[rows.columns.size - 1] + int64_t{1});
  return p;
}

}  // namespace

const char* xc_parse_row(const XcSpec& spec, XcRows& rows, const char* line) {
  const char* p = line;
  if (spec.labelled && !is_blank(*p) && !at_line_end(p)) p = parse_labels(spec, rows, p);
  p = parse_entries(spec, rows, p, line);
  rows.column_end[rows.column_end.size++] = rows.columns.size;
  rows.label_end[rows.label_end.size++] = rows.labels.size;
  return p + 1 + (*p == '\r');
}

}  // namespace lt
