#include "kernels/label_features.h"

#include <algorithm>
#include <bit>
#include <cmath>
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

  // Appends the non-zero sums in column order and clears.
  void drain(std::vector<int32_t>& columns, std::vector<float>& values) {
    for (size_t s = 0; s < summary_.size(); ++s) {
      for (; summary_[s]; summary_[s] &= summary_[s] - 1) {
        const size_t w = s * 64 + std::countr_zero(summary_[s]);
        for (; words_[w]; words_[w] &= words_[w] - 1) {
          const size_t column = w * 64 + std::countr_zero(words_[w]);
          const float value = std::exchange(sums_[column], 0.0f);
          if (value == 0) continue;
          columns.push_back(static_cast<int32_t>(column));
          values.push_back(value);
        }
      }
    }
  }

 private:
  std::vector<float> sums_;
  std::vector<uint64_t> words_, summary_;
};

// Keeps the `keep` largest of the entries from `start` on, in column order.
void keep_largest(int64_t start, int64_t keep, std::vector<int32_t>& columns, std::vector<float>& values,
                  std::vector<int32_t>& ranking) {
  const int64_t n = static_cast<int64_t>(columns.size()) - start;
  if (keep <= 0 || n <= keep) return;
  ranking.resize(n);
  for (int64_t i = 0; i < n; ++i) ranking[i] = static_cast<int32_t>(i);
  std::nth_element(ranking.begin(), ranking.begin() + (keep - 1), ranking.end(), [&](int32_t a, int32_t b) {
    const float x = std::abs(values[start + a]), y = std::abs(values[start + b]);
    return x != y ? x > y : a < b;
  });
  std::sort(ranking.begin(), ranking.begin() + keep);
  for (int64_t i = 0; i < keep; ++i) {
    columns[start + i] = columns[start + ranking[i]];
    values[start + i] = values[start + ranking[i]];
  }
  columns.resize(start + keep);
  values.resize(start + keep);
}

struct Block {
  std::vector<int32_t> columns;
  std::vector<float> values;
};

}  // namespace

bool sum_positive_rows(const CsrView& X, const CsrView& labels, int64_t max_features, int n_threads, OwnedCsr& out,
                       const Poll& poll) {
  const int64_t n_labels = labels.n_rows, n_blocks = (n_labels + kLabelsPerBlock - 1) / kLabelsPerBlock;
  struct Scratch {
    SparseSum sum;
    std::vector<int32_t> ranking;
  };
  std::vector<std::unique_ptr<Scratch>> scratch(std::max(n_threads, 1));
  std::vector<Block> blocks(n_blocks);
  out.indptr.assign(n_labels + 1, 0);

  const auto sum_block = [&](int64_t b, int worker) {
    if (!scratch[worker]) scratch[worker] = std::make_unique<Scratch>(Scratch{SparseSum(X.n_cols), {}});
    auto& [sum, ranking] = *scratch[worker];
    Block block;
    for (int64_t l = b * kLabelsPerBlock; l < std::min(n_labels, (b + 1) * kLabelsPerBlock); ++l) {
      const int64_t start = static_cast<int64_t>(block.columns.size());
      for (int64_t t = labels.begin(l); t < labels.end(l); ++t) sum.add(X, labels.indices[t], labels.values[t]);
      sum.drain(block.columns, block.values);
      keep_largest(start, max_features, block.columns, block.values, ranking);
      const int64_t n = static_cast<int64_t>(block.columns.size()) - start;
      const double factor = inverse_norm(block.values.data() + start, n, l);
      for (int64_t i = start; i < start + n; ++i) block.values[i] = static_cast<float>(block.values[i] * factor);
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
        const Block block = std::move(blocks[b]);
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
    for (int64_t t = labels.begin(l); t < labels.end(l); ++t) {
      const float weight = labels.values[t];
      const float* row = X.row(labels.indices[t]);
      for (int64_t j = 0; j < X.n_cols; ++j) sum[j] += weight * row[j];
    }
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
