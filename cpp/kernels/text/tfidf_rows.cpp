#include "kernels/text/tfidf_rows.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>

namespace lt {

namespace {

void insertion_sort(Entry* entries, int64_t n) {
  for (int64_t i = 1; i < n; ++i) {
    const Entry entry = entries[i];
    int64_t j = i;
    for (; j > 0 && entries[j - 1] > entry; --j) entries[j] = entries[j - 1];
    entries[j] = entry;
  }
}

// Least significant digit first; ends in `entries`.
void radix_sort(Entry* entries, int64_t n, int bits, Buffer<Entry>& spare) {
  const int passes = (bits + 7) / 8, digit = passes ? (bits + passes - 1) / passes : 0;
  const uint64_t mask = (uint64_t{1} << digit) - 1;
  spare.reserve(n);
  Entry *from = entries, *to = spare.data();
  for (int pass = 0; pass < passes; ++pass) {
    const int shift = 32 + pass * digit;
    int64_t start[257] = {};
    for (int64_t i = 0; i < n; ++i) ++start[(from[i] >> shift & mask) + 1];
    for (uint64_t d = 0; d < mask; ++d) start[d + 1] += start[d];
    for (int64_t i = 0; i < n; ++i) to[start[from[i] >> shift & mask]++] = from[i];
    std::swap(from, to);
  }
  if (from != entries) std::memcpy(entries, from, n * sizeof(Entry));
}

constexpr int kLogs = 256;

// 1 + log(times) of small counts, once.
const std::array<double, kLogs>& sublinear_tf() {
  static const std::array<double, kLogs> table = [] {
    std::array<double, kLogs> out{};
    for (int times = 1; times < kLogs; ++times) out[times] = 1 + std::log(static_cast<double>(times));
    return out;
  }();
  return table;
}

}  // namespace

int64_t sort_row(Entry* entries, int64_t n, int bits, Buffer<Entry>& spare) {
  if (n <= 32) {
    insertion_sort(entries, n);
  } else {
    radix_sort(entries, n, bits, spare);
  }
  int64_t size = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (size > 0 && entry_id(entries[size - 1]) == entry_id(entries[i])) {
      entries[size - 1] += entry_times(entries[i]);
    } else {
      entries[size++] = entries[i];
    }
  }
  return size;
}

void weigh_row(const Entry* entries, int64_t n, const Weighting& weighting, Buffer<double>& spare, int32_t* columns,
               float* values) {
  const std::array<double, kLogs>& logs = sublinear_tf();
  spare.reserve(n);
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t times = entry_times(entries[i]), column = entry_id(entries[i]);
    double value = weighting.binary       ? 1.0
                   : !weighting.sublinear ? static_cast<double>(times)
                   : times < kLogs        ? logs[times]
                                          : 1 + std::log(static_cast<double>(times));
    if (weighting.weights) value *= weighting.weights[column];
    columns[i] = static_cast<int32_t>(column);
    spare[i] = value;
    sum += value;
    squares += value * value;
  }
  const double norm = weighting.norm == Norm::l2 ? std::sqrt(squares) : weighting.norm == Norm::l1 ? sum : 1.0;
  const double scale = norm > 0 ? 1 / norm : 1;
  for (int64_t i = 0; i < n; ++i) values[i] = static_cast<float>(spare[i] * scale);
}

CsrArrays write_csr(std::vector<RowBlock>& blocks, const Weighting& weighting, int n_threads, const Poll& poll) {
  const int64_t n_blocks = static_cast<int64_t>(blocks.size());
  std::vector<int64_t> first_row(n_blocks + 1), first_entry(n_blocks + 1);
  for (int64_t b = 0; b < n_blocks; ++b) {
    first_row[b + 1] = first_row[b] + static_cast<int64_t>(blocks[b].ends.size());
    first_entry[b + 1] = first_entry[b] + blocks[b].size;
  }
  CsrArrays out;
  out.n_rows = first_row[n_blocks];
  out.indptr.reset(new int64_t[out.n_rows + 1]);
  out.indices.reset(new int32_t[first_entry[n_blocks]]);  // not cleared: the workers write, and touch, it first
  out.values.reset(new float[first_entry[n_blocks]]);
  out.indptr[0] = 0;
  std::vector<Buffer<double>> spare(std::max(n_threads, 1));
  const bool done = parallel_for(
      n_blocks, n_threads,
      [&](int64_t b, int worker) {
        RowBlock& block = blocks[b];
        int64_t begin = 0, row = first_row[b];
        for (const int64_t end : block.ends) {
          const int64_t at = first_entry[b] + begin;
          weigh_row(block.entries.data() + begin, end - begin, weighting, spare[worker], &out.indices[at],
                    &out.values[at]);
          out.indptr[++row] = first_entry[b] + end;
          begin = end;
        }
        block = RowBlock();
      },
      poll);
  if (!done) throw std::runtime_error("stopped");
  return out;
}

}  // namespace lt
