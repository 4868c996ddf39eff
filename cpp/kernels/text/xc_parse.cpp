#include "kernels/text/xc_parse.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <new>
#include <string>

#include "kernels/base/parallel.h"
#include "kernels/text/xc_rows.h"

namespace lt {

namespace {

// Lets tasks through in the order of their numbers. Tasks start in that order, so the one waited for is always at work.
class Turnstile {
 public:
  // Runs body when it is `task`'s turn, unless an earlier task gave up.
  template <class Body>
  void pass(int64_t task, const Body& body) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return turn_ == task || closed_; });
    if (closed_) return;
    body();
    ++turn_;
    changed_.notify_all();
  }

  void close() {
    std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int64_t turn_ = 0;
  bool closed_ = false;
};

// Makes room for n_rows more rows in lines of so many bytes: the shortest entry, "0:1 ", takes four of them, the
// shortest label two.
void reserve_more(XcRows& rows, int64_t bytes, int64_t n_rows, bool labelled) {
  rows.columns.reserve(rows.columns.size + bytes / 4 + 1);
  rows.values.reserve(rows.values.size + bytes / 4 + 1);
  if (labelled) rows.labels.reserve(rows.labels.size + bytes / 2 + 1);
  rows.column_end.reserve(rows.n_rows() + n_rows);
  rows.label_end.reserve(rows.n_rows() + n_rows);
}

// Starts of chunks of whole lines, and the end. All but the last line of a chunk take at most chunk_bytes together.
std::vector<const char*> cut_at_lines(const char* begin, const char* end, int64_t chunk_bytes) {
  std::vector<const char*> cuts{begin};
  while (cuts.back() < end)
    cuts.push_back(end - cuts.back() <= chunk_bytes ? end : line_after(cuts.back() + chunk_bytes - 1, end));
  return cuts;
}

// Parses whole lines. On failure returns it, and leaves `line` at the line that it is in.
std::optional<ScanFailure> parse_chunk(const XcSpec& spec, XcRows& chunk, const char*& line, const char* end,
                                       int64_t chunk_bytes) {
  chunk.columns.size = chunk.values.size = chunk.labels.size = chunk.column_end.size = chunk.label_end.size = 0;
  chunk.width = chunk.label_width = 0;
  reserve_more(chunk, end - line, std::min<int64_t>(end - line, chunk_bytes) + 1, spec.labelled);
  try {
    while (line < end) line = xc_parse_row(spec, chunk, line);
  } catch (ScanFailure& failure) {
    return std::move(failure);
  }
  return std::nullopt;
}

// The first row from `row` on that is not empty, or n_rows.
int64_t first_filled_row(const XcRows& chunk, int64_t row) {
  const int64_t columns = row ? chunk.column_end[row - 1] : 0, labels = row ? chunk.label_end[row - 1] : 0;
  while (row < chunk.n_rows() && chunk.column_end[row] == columns && chunk.label_end[row] == labels) ++row;
  return row;
}

// Where a chunk goes in the result.
struct Place {
  int64_t row = 0, column = 0, label = 0;
  int64_t n_rows = 0;  // how many of its rows are wanted
};

// Claims the next stretch of the result. Sets `error` if the chunk must not be there, or has one itself.
Place claim(XcParser& parser, const XcRows& chunk, std::optional<TextError>& error) {
  XcRows& rows = parser.rows;
  Place place{rows.n_rows(), rows.columns.size, rows.labels.size, chunk.n_rows()};
  if (parser.spec.n_rows >= 0 && place.n_rows > parser.spec.n_rows - place.row) {
    place.n_rows = parser.spec.n_rows - place.row;
    const int64_t extra = first_filled_row(chunk, place.n_rows);
    if (extra < chunk.n_rows())
      error = TextError{parser.line + extra, 1,
                        "expected the end of the file, got another row: the header announces " +
                            std::to_string(parser.spec.n_rows) + " rows"};
  }
  parser.line += chunk.n_rows();
  rows.column_end.size = rows.label_end.size = place.row + place.n_rows;
  rows.columns.size = rows.values.size = place.column + chunk.columns.size;
  rows.labels.size = place.label + chunk.labels.size;
  rows.width = std::max(rows.width, chunk.width);
  rows.label_width = std::max(rows.label_width, chunk.label_width);
  return place;
}

void copy_chunk(XcRows& rows, const XcRows& chunk, const Place& place) {
  std::copy_n(chunk.columns.data(), chunk.columns.size, rows.columns.data() + place.column);
  std::copy_n(chunk.values.data(), chunk.values.size, rows.values.data() + place.column);
  std::copy_n(chunk.labels.data(), chunk.labels.size, rows.labels.data() + place.label);
  int64_t* column_end = rows.column_end.data() + place.row;
  int64_t* label_end = rows.label_end.data() + place.row;
  for (int64_t i = 0; i < place.n_rows; ++i) column_end[i] = place.column + chunk.column_end[i];
  for (int64_t i = 0; i < place.n_rows; ++i) label_end[i] = place.label + chunk.label_end[i];
}

}  // namespace

std::optional<TextError> xc_parse(XcParser& parser, const char* begin, const char* end, int n_threads,
                                  int64_t chunk_bytes) {
  const XcSpec& spec = parser.spec;
  chunk_bytes = std::max<int64_t>(chunk_bytes, 1);
  const std::vector<const char*> cuts = cut_at_lines(begin, end, chunk_bytes);
  const int64_t bytes = end - begin;
  const int64_t rows_left = spec.n_rows < 0 ? bytes : spec.n_rows - parser.rows.n_rows();
  reserve_more(parser.rows, bytes, std::min(bytes, rows_left), spec.labelled);
  parser.scratch.resize(std::max<size_t>(parser.scratch.size(), std::max(n_threads, 1)));

  Turnstile turnstile;
  std::optional<TextError> error;
  parallel_for(static_cast<int64_t>(cuts.size()) - 1, n_threads, [&](int64_t task, int worker) {
    XcRows& chunk = parser.scratch[worker];
    const char* line = cuts[task];
    std::optional<ScanFailure> failure;
    try {
      failure = parse_chunk(spec, chunk, line, cuts[task + 1], chunk_bytes);
    } catch (...) {
      turnstile.close();
      throw;
    }
    Place place;
    turnstile.pass(task, [&] {
      if (error) return;
      const int64_t failed_line = parser.line + chunk.n_rows();
      place = claim(parser, chunk, error);
      if (failure && !error) error = TextError{failed_line, failure->at - line + 1, std::move(failure->message)};
      if (error) place.n_rows = 0;
    });
    if (place.n_rows > 0) copy_chunk(parser.rows, chunk, place);
  });
  return error;
}

void xc_expect(XcParser& parser, int64_t bytes_read, int64_t bytes_in_all) {
  if (bytes_read <= 0 || bytes_in_all <= bytes_read) return;
  XcRows& rows = parser.rows;
  const double factor = 1.02 * static_cast<double>(bytes_in_all) / static_cast<double>(bytes_read);
  auto reserve = [&](auto& array, int64_t most) {
    const double n = std::min(static_cast<double>(array.size) * factor, static_cast<double>(most));
    array.reserve(static_cast<int64_t>(n));
  };
  try {
    reserve(rows.columns, bytes_in_all);
    reserve(rows.values, bytes_in_all);
    reserve(rows.labels, bytes_in_all);
    const int64_t n_rows = parser.spec.n_rows < 0 ? bytes_in_all : parser.spec.n_rows;
    reserve(rows.column_end, n_rows);
    reserve(rows.label_end, n_rows);
  } catch (const std::bad_alloc&) {  // the guess may have been wrong: the arrays will grow as they must
  }
}

void xc_drop_empty_end(XcRows& rows) {
  int64_t n = rows.n_rows();
  auto begin_of = [&](const GrowingArray<int64_t>& end) { return n > 1 ? end[n - 2] : 0; };
  while (n > 0 && begin_of(rows.column_end) == rows.columns.size && begin_of(rows.label_end) == rows.labels.size) --n;
  rows.column_end.size = rows.label_end.size = n;
}

}  // namespace lt
