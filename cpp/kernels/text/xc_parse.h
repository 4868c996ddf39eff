// Rows of the extreme-classification text formats, from bytes to compressed sparse rows. The grammar is in
// longtail/data/xc_format.py; headers and files are the caller's concern.
//
// A text arrives in blocks of whole lines. A block is cut into chunks at line ends, small enough for the second-level
// cache; a worker parses a chunk into scratch arrays of its own, waits until all earlier chunks have said how many rows
// and entries they hold, says so itself, and copies its part to its final place:
//
//   worker 0   parse 0 | claim 0 | copy 0 | parse 2 ........ | claim 2 | copy 2
//   worker 1   parse 1 ....... | claim 1 | copy 1 | parse 3 ....... wait | claim 3 | copy 3
//
// So memory is the result, one block, and one chunk a worker; and neither the result nor the error reported (the first
// in the text) depends on the number of threads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/base/growing.h"
#include "kernels/text/text_scan.h"

namespace lt {

inline constexpr int64_t kMaxColumns = INT32_MAX;  // indices are int32, and so are widths

// What rows must look like.
struct XcSpec {
  bool labelled = true;             // rows start with a list of labels
  bool unit_values = false;         // values must lie in [0, 1]
  std::string noun = "feature";     // what an index before a ':' counts
  int64_t n_rows = -1;              // what the header says; -1: as many as there are
  int64_t n_columns = kMaxColumns;  // an index before a ':' is below this
  int64_t n_labels = kMaxColumns;   // a label is below this
};

// Rows of labels and of entries `index:value`. Both *_end hold, for each row, the number of entries up to its end.
struct XcRows {
  GrowingArray<int32_t> columns;
  GrowingArray<float> values;
  GrowingArray<int32_t> labels;
  GrowingArray<int64_t> column_end;
  GrowingArray<int64_t> label_end;
  int64_t width = 0;        // largest column index + 1
  int64_t label_width = 0;  // largest label + 1

  int64_t n_rows() const { return column_end.size; }
};

struct XcParser {
  XcSpec spec;
  XcRows rows;                  // what has been read so far
  int64_t line = 1;             // number of the next line
  std::vector<XcRows> scratch;  // one a worker
};

// Appends the lines of text [begin, end), which ends with '\n' (or is empty) and is followed by kTextPadding readable
// bytes. Within a row, entries are sorted; a label listed twice counts once, values of an index listed twice are added.
// Empty rows beyond spec.n_rows are dropped. Returns the first error, if any; then the parser is spent.
std::optional<TextError> xc_parse(XcParser& parser, const char* begin, const char* end, int n_threads,
                                  int64_t chunk_bytes = 1 << 16);

// Room for as many entries as a text of so many bytes will hold if it goes on as it began. A wrong guess costs nothing
// but address space.
void xc_expect(XcParser& parser, int64_t bytes_read, int64_t bytes_in_all);

// Drops empty rows at the end.
void xc_drop_empty_end(XcRows& rows);

}  // namespace lt
