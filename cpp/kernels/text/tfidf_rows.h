// Rows of counts, and the weights that make them tf-idf.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/base/parallel.h"
#include "kernels/text/tfidf_count.h"

namespace lt {

enum class Norm { none, l1, l2 };

// The weight of every column: one each (dense), or those of some ascending columns, all others weighing the same.
class ColumnWeights {
 public:
  ColumnWeights() = default;
  explicit ColumnWeights(const float* dense) : values_(dense) {}
  ColumnWeights(const int32_t* columns, const float* values, int64_t n, float others)
      : columns_(columns), values_(values), n_(n), others_(others), listed_(true) {}
  explicit operator bool() const { return listed_ || values_ != nullptr; }
  float operator[](uint32_t column) const {
    if (!listed_) return values_[column];
    const int32_t* end = columns_ + n_;
    const int32_t* at = std::lower_bound(columns_, end, static_cast<int32_t>(column));
    return at != end && *at == static_cast<int32_t>(column) ? values_[at - columns_] : others_;
  }

 private:
  const int32_t* columns_ = nullptr;
  const float* values_ = nullptr;
  int64_t n_ = 0;
  float others_ = 0;
  bool listed_ = false;  // of an empty list, columns_ may be null
};

// value = tf * weight[column], divided by the row's norm; tf is the count, 1 + log(count) (sublinear) or 1 (binary).
struct Weighting {
  bool binary = false, sublinear = true;
  Norm norm = Norm::l2;
  ColumnWeights weights;  // or none, for 1; a column of weight 0 is left out of the rows
};

// Rows of consecutive texts.
struct RowBlock {
  Buffer<Entry> entries;
  int64_t size = 0;
  std::vector<int64_t> ends;  // (n_rows) where each row ends
  int worker = 0;             // whose node numbers the entries hold, while they do
};

// Sorts entries by column, adds up those of one column, and returns how many are left. Columns are below 2^bits.
int64_t sort_row(Entry* entries, int64_t n, int bits, Buffer<Entry>& spare);

// Replaces every entry's number by to_column(number) (UINT32_MAX: left out) and sorts the rows.
template <class ToColumn>
void map_rows(RowBlock& block, int bits, Buffer<Entry>& spare, ToColumn&& to_column) {
  int64_t from = 0, size = 0;
  for (int64_t& end : block.ends) {
    const int64_t begin = size;
    for (; from < end; ++from) {
      const uint32_t column = to_column(entry_id(block.entries[from]));
      block.entries[size] = make_entry(column, entry_times(block.entries[from]));
      size += column != UINT32_MAX;
    }
    size = begin + sort_row(block.entries.data() + begin, size - begin, bits, spare);
    end = size;
  }
  block.size = size;
}

// Writes the columns and values of a sorted row.
void weigh_row(const Entry* entries, int64_t n, const Weighting& weighting, Buffer<double>& spare, int32_t* columns,
               float* values);

// The rows of all blocks as one sparse matrix. Frees the blocks as it goes.
struct CsrArrays {
  int64_t n_rows = 0;
  std::unique_ptr<int64_t[]> indptr;   // (n_rows + 1)
  std::unique_ptr<int32_t[]> indices;  // (nnz)
  std::unique_ptr<float[]> values;     // (nnz)
};
CsrArrays write_csr(std::vector<RowBlock>& blocks, const Weighting& weighting, int n_threads, const Poll& poll);

}  // namespace lt
