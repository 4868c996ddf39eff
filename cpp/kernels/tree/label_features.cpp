#include "kernels/tree/label_features.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>

#include "kernels/base/slabs.h"

namespace lt {

namespace {

constexpr int64_t kLabelsPerBlock = 128;

// The factor that brings a row to unit length, 0 for a zero row.
double inverse_norm(const float* values, int64_t n, int64_t label) {
  double squares = 0;
  for (int64_t i = 0; i < n; ++i) squares += static_cast<double>(values[i]) * values[i];
  if (!std::isfinite(squares))
    throw std::invalid_argument("the feature sum of label " + std::to_string(label) +
                                " overflows: scale the rows of X to unit length first");
  return squares > 0 ? 1 / std::sqrt(squares) : 0;
}

// One dense row and the set of its columns in use: a bitmap with a mark for every 8 words of it, so that walking the
// columns in order costs their number plus n_cols / 4096. Nothing but loops depends on the data: a branch for every
// column would be foreseen half of the time.
class SparseSum {
 public:
  explicit SparseSum(int64_t n_cols)
      : sums_(n_cols), words_((n_cols + 511) / 512 * 8), marks_((n_cols + 4095) / 4096 * 8) {}

  void add(const CsrView& X, int64_t row, float weight) {
    for (int64_t t = X.begin(row); t < X.end(row); ++t) {
      const uint32_t column = X.indices[t];
      sums_[column] += weight * X.values[t];
      words_[column >> 6] |= uint64_t{1} << (column & 63);
      marks_[column >> 9] = 1;
    }
  }

  // Writes the sums that are not zero in column order and clears; returns their number. `columns` has room for kAtOnce
  // more.
  int64_t drain(int32_t* columns, float* values) {
    int64_t n_used = 0;
    for (size_t eight = 0; eight + 8 <= marks_.size(); eight += 8) {
      uint64_t marked;
      std::memcpy(&marked, &marks_[eight], 8);
      if (!marked) continue;
      int in_use[64], n_words = 0, groups[8], n_groups = 0;
      for (int g = 0; g < 8; ++g) {
        groups[n_groups] = g * 8;
        n_groups += marks_[eight + g];
      }
      std::memset(&marks_[eight], 0, 8);
      const size_t first = eight * 8;
      for (int g = 0; g < n_groups; ++g)
        for (int w = groups[g]; w < groups[g] + 8; ++w) {
          in_use[n_words] = w;
          n_words += words_[first + w] != 0;
        }
      for (int k = 0; k < n_words; ++k) {
        const size_t w = first + in_use[k];
        for (uint64_t word = std::exchange(words_[w], 0); word;)
          for (int bit = 0; bit < kAtOnce; ++bit) {
            columns[n_used] = static_cast<int32_t>(w * 64) + __builtin_ctzll(word | kTop);
            n_used += word != 0;
            word &= word - 1;
          }
      }
    }
    int64_t n = 0;
    for (int64_t i = 0; i < n_used; ++i) {
      columns[n] = columns[i];
      values[n] = std::exchange(sums_[columns[i]], 0.0f);
      n += values[n] != 0;
    }
    return n;
  }

  static constexpr int kAtOnce = 4;  // columns of a word

 private:
  static constexpr uint64_t kTop = uint64_t{1} << 63;  // makes a word of zero one that has a first bit
  std::vector<float> sums_;
  std::vector<uint64_t> words_;
  std::vector<uint8_t> marks_;  // (a multiple of 8)
};

// What choosing the largest entries of a label needs.
struct Selection {
  std::array<uint32_t, 2048> counts;
  std::vector<uint64_t> keys;
};

// Moves the `keep` largest entries to the front, in column order; returns how many are left. They are counted by the
// first bits of their absolute values, which order like the values, and only those that share the bits of the last one
// kept are compared.
int64_t keep_largest(int64_t keep, int64_t n, int32_t* columns, float* values, Selection& selection) {
  if (keep == 0 || n <= keep) return n;
  constexpr int kShift = 20;
  const auto bits = [&](int64_t i) { return std::bit_cast<uint32_t>(values[i]) & 0x7FFFFFFFu; };
  const auto key = [&](int64_t i) {
    return uint64_t{bits(i)} << 32 | static_cast<uint32_t>(n - i);
  };  // ties: the first
  auto& counts = selection.counts;
  counts.fill(0);
  for (int64_t i = 0; i < n; ++i) ++counts[bits(i) >> kShift];
  int64_t missing = keep;
  uint32_t last = static_cast<uint32_t>(counts.size()) - 1;
  for (; counts[last] < missing; --last) missing -= counts[last];
  selection.keys.resize(n + 1);
  int64_t n_keys = 0;
  for (int64_t i = 0; i < n; ++i) {
    selection.keys[n_keys] = key(i);
    n_keys += bits(i) >> kShift == last;
  }
  const auto begin = selection.keys.begin();
  std::nth_element(begin, begin + (missing - 1), begin + n_keys, std::greater<>());
  const uint64_t smallest = begin[missing - 1];
  for (int64_t i = 0, next = 0; i < n; ++i) {
    const bool kept = key(i) >= smallest;
    columns[next] = columns[i];
    values[next] = values[i];
    next += kept;
  }
  return keep;
}

// The vectors of a block of labels, one after the other: all columns, then all values.
struct LabelBlock {
  int64_t n = 0;
  Slabs::Piece memory;

  int32_t* columns() const { return reinterpret_cast<int32_t*>(memory.get()); }
  float* values(int64_t room) const { return reinterpret_cast<float*>(columns() + room); }
};

// A label has no more features than its rows have entries.
int64_t most_features(const CsrView& X, const CsrView& labels, int64_t label, int64_t max_features, int64_t n_dense) {
  int64_t n = 0;
  for (int64_t t = labels.begin(label); t < labels.end(label); ++t) n += X.row_nnz(labels.indices[t]);
  n = std::min(n, X.n_cols) + n_dense;
  return max_features > 0 ? std::min(n, max_features) : n;
}

// out += weight x
void add_scaled(const float* x, float weight, int64_t n, float* out) {
  for (int64_t j = 0; j < n; ++j) out[j] += weight * x[j];
}

struct Scratch {
  Scratch(int64_t n_cols, int64_t n_dense)  // one more: a zero is written before it is passed over
      : sum(n_cols), dense(n_dense), columns(n_cols + n_dense + SparseSum::kAtOnce), values(n_cols + n_dense + 1) {}
  SparseSum sum;
  std::vector<float> dense;  // zero between labels
  std::vector<int32_t> columns;
  std::vector<float> values;
  Selection selection;
  Slabs slabs;
};

}  // namespace

bool sum_positive_rows(const CsrView& X, const CsrView& labels, int64_t max_features, int n_threads, OwnedCsr& out,
                       const Poll& poll, const MatrixView<const float>& dense) {
  const int64_t n_labels = labels.n_rows, n_blocks = (n_labels + kLabelsPerBlock - 1) / kLabelsPerBlock;
  std::vector<std::unique_ptr<Scratch>> scratch(std::max(n_threads, 1));
  std::vector<LabelBlock> blocks(n_blocks);
  out.indptr.assign(n_labels + 1, 0);

  const auto sum_block = [&](int64_t b, int worker) {
    if (!scratch[worker]) scratch[worker] = std::make_unique<Scratch>(X.n_cols, dense.n_cols);
    Scratch& mine = *scratch[worker];
    const int64_t first = b * kLabelsPerBlock, last = std::min(n_labels, first + kLabelsPerBlock);
    int64_t room = 0;
    for (int64_t l = first; l < last; ++l) room += most_features(X, labels, l, max_features, dense.n_cols);
    LabelBlock block;
    block.memory = mine.slabs.take(8 * room);
    for (int64_t l = first; l < last; ++l) {
      for (int64_t t = labels.begin(l); t < labels.end(l); ++t) {
        const int32_t row = labels.indices[t];
        if (t + kRowsAhead < labels.end(last - 1)) prefetch_row(X, labels.indices[t + kRowsAhead]);
        mine.sum.add(X, row, labels.values[t]);
        if (dense.n_cols) add_scaled(dense.row(row), labels.values[t], dense.n_cols, mine.dense.data());
      }
      int64_t n = mine.sum.drain(mine.columns.data(), mine.values.data());
      for (int64_t j = 0; j < dense.n_cols; ++j) {
        mine.columns[n] = static_cast<int32_t>(X.n_cols + j);
        mine.values[n] = std::exchange(mine.dense[j], 0.0f);
        n += mine.values[n] != 0;
      }
      n = keep_largest(max_features, n, mine.columns.data(), mine.values.data(), mine.selection);
      const double factor = inverse_norm(mine.values.data(), n, l);
      std::copy_n(mine.columns.data(), n, block.columns() + block.n);
      float* values = block.values(room) + block.n;
      for (int64_t i = 0; i < n; ++i) values[i] = static_cast<float>(mine.values[i] * factor);
      out.indptr[l + 1] = n;
      block.n += n;
    }
    std::copy_n(block.values(room), block.n, block.values(block.n));
    mine.slabs.keep(8 * block.n);
    blocks[b] = std::move(block);
  };
  if (!parallel_for(n_blocks, n_threads, sum_block, poll)) return false;

  for (int64_t l = 0; l < n_labels; ++l) out.indptr[l + 1] += out.indptr[l];
  out.indices.resize(out.indptr[n_labels]);
  out.values.resize(out.indptr[n_labels]);
  // A slab is freed as soon as its blocks are copied, and pages of the result exist only once written: the peak stays
  // near one.
  return parallel_for(
      n_blocks, n_threads,
      [&](int64_t b, int) {
        const LabelBlock block = std::exchange(blocks[b], LabelBlock());
        std::copy_n(block.columns(), block.n, out.indices.data() + out.indptr[b * kLabelsPerBlock]);
        std::copy_n(block.values(block.n), block.n, out.values.data() + out.indptr[b * kLabelsPerBlock]);
      },
      poll);
}

bool sum_positive_rows(const MatrixView<const float>& X, const CsrView& labels, int n_threads,
                       const MatrixView<float>& out, const Poll& poll) {
  const auto sum_label = [&](int64_t l) {
    float* sum = out.row(l);
    std::fill(sum, sum + X.n_cols, 0.0f);
    for (int64_t t = labels.begin(l); t < labels.end(l); ++t)
      add_scaled(X.row(labels.indices[t]), labels.values[t], X.n_cols, sum);
    const double factor = inverse_norm(sum, X.n_cols, l);
    for (int64_t j = 0; j < X.n_cols; ++j) sum[j] = static_cast<float>(sum[j] * factor);
  };
  return parallel_blocks(
      labels.n_rows, kLabelsPerBlock, n_threads,
      [&](int64_t begin, int64_t end, int) {
        for (int64_t l = begin; l < end; ++l) sum_label(l);
      },
      poll);
}

}  // namespace lt
