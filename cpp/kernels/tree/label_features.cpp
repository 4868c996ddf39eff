#include "kernels/tree/label_features.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>

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

// One dense row and the set of its columns in use: a bitmap with a bitmap of its non-zero words above it, so that
// walking the columns in order costs their number plus n_cols / 4096.
class SparseSum {
 public:
  explicit SparseSum(int64_t n_cols) : sums_(n_cols), words_((n_cols + 63) / 64), summary_((words_.size() + 63) / 64) {}

  void add(const CsrView& X, int64_t row, float weight) {
    for (int64_t t = X.begin(row); t < X.end(row); ++t) {
      const uint32_t column = X.indices[t];
      sums_[column] += weight * X.values[t];
      words_[column >> 6] |= uint64_t{1} << (column & 63);
      summary_[column >> 12] |= uint64_t{1} << ((column >> 6) & 63);
    }
  }

  // Writes the sums that are not zero in column order and clears; returns their number.
  int64_t drain(int32_t* columns, float* values) {
    int64_t n = 0;
    for (size_t s = 0; s < summary_.size(); ++s) {
      for (uint64_t in_use = std::exchange(summary_[s], 0); in_use; in_use &= in_use - 1) {
        const size_t w = s * 64 + std::countr_zero(in_use);
        for (uint64_t word = std::exchange(words_[w], 0); word; word &= word - 1) {
          const size_t column = w * 64 + std::countr_zero(word);
          columns[n] = static_cast<int32_t>(column);
          values[n] = std::exchange(sums_[column], 0.0f);
          n += values[n] != 0;
        }
      }
    }
    return n;
  }

 private:
  std::vector<float> sums_;
  std::vector<uint64_t> words_, summary_;
};

// Moves the `keep` largest entries to the front, in column order; returns how many are left.
int64_t keep_largest(int64_t keep, int64_t n, int32_t* columns, float* values, std::vector<uint64_t>& keys) {
  if (keep == 0 || n <= keep) return n;
  const auto key = [&](int64_t i) {  // absolute values order like their bits; of equal ones the first is the largest
    return uint64_t{std::bit_cast<uint32_t>(values[i]) & 0x7FFFFFFFu} << 32 | static_cast<uint32_t>(n - i);
  };
  keys.resize(n);
  for (int64_t i = 0; i < n; ++i) keys[i] = key(i);
  std::nth_element(keys.begin(), keys.begin() + (keep - 1), keys.end(), std::greater<>());
  const uint64_t smallest = keys[keep - 1];
  for (int64_t i = 0, next = 0; next < keep; ++i) {
    if (key(i) < smallest) continue;
    columns[next] = columns[i];
    values[next++] = values[i];
  }
  return keep;
}

// The vectors of a block of labels, one after the other.
struct LabelBlock {
  std::vector<int32_t> columns;
  std::vector<float> values;
};

// out += weight x
void add_scaled(const float* x, float weight, int64_t n, float* out) {
  for (int64_t j = 0; j < n; ++j) out[j] += weight * x[j];
}

struct Scratch {
  Scratch(int64_t n_cols, int64_t n_dense)  // one more: a zero is written before it is passed over
      : sum(n_cols), dense(n_dense), columns(n_cols + n_dense + 1), values(n_cols + n_dense + 1) {}
  SparseSum sum;
  std::vector<float> dense;  // zero between labels
  std::vector<int32_t> columns;
  std::vector<float> values;
  std::vector<uint64_t> keys;
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
    LabelBlock block;
    for (int64_t l = b * kLabelsPerBlock; l < std::min(n_labels, (b + 1) * kLabelsPerBlock); ++l) {
      for (int64_t t = labels.begin(l); t < labels.end(l); ++t) {
        const int32_t row = labels.indices[t];
        mine.sum.add(X, row, labels.values[t]);
        if (dense.n_cols) add_scaled(dense.row(row), labels.values[t], dense.n_cols, mine.dense.data());
      }
      int64_t n = mine.sum.drain(mine.columns.data(), mine.values.data());
      for (int64_t j = 0; j < dense.n_cols; ++j) {
        mine.columns[n] = static_cast<int32_t>(X.n_cols + j);
        mine.values[n] = std::exchange(mine.dense[j], 0.0f);
        n += mine.values[n] != 0;
      }
      n = keep_largest(max_features, n, mine.columns.data(), mine.values.data(), mine.keys);
      const double factor = inverse_norm(mine.values.data(), n, l);
      for (int64_t i = 0; i < n; ++i) mine.values[i] = static_cast<float>(mine.values[i] * factor);
      block.columns.insert(block.columns.end(), mine.columns.begin(), mine.columns.begin() + n);
      block.values.insert(block.values.end(), mine.values.begin(), mine.values.begin() + n);
      out.indptr[l + 1] = n;
    }
    block.columns.shrink_to_fit();
    block.values.shrink_to_fit();
    blocks[b] = std::move(block);
  };
  if (!parallel_for(n_blocks, n_threads, sum_block, poll)) return false;

  for (int64_t l = 0; l < n_labels; ++l) out.indptr[l + 1] += out.indptr[l];
  out.indices.reset(new int32_t[out.indptr[n_labels]]);
  out.values.reset(new float[out.indptr[n_labels]]);
  // A block is freed as soon as it is copied, and pages of the result exist only once written: the peak stays near one.
  return parallel_for(
      n_blocks, n_threads,
      [&](int64_t b, int) {
        const LabelBlock block = std::move(blocks[b]);
        std::copy(block.columns.begin(), block.columns.end(), out.indices.get() + out.indptr[b * kLabelsPerBlock]);
        std::copy(block.values.begin(), block.values.end(), out.values.get() + out.indptr[b * kLabelsPerBlock]);
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
