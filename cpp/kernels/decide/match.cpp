#include "kernels/decide/match.h"

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace lt {

namespace {

constexpr int64_t kMatchedRowsPerTask = 8192;

float value_at(const CsrView& matrix, int64_t row, int32_t column) {
  const int32_t* first = matrix.indices + matrix.begin(row);
  const int32_t* last = matrix.indices + matrix.end(row);
  const int32_t* found = std::lower_bound(first, last, column);
  return found != last && *found == column ? matrix.values[found - matrix.indices] : 0.0f;
}

}  // namespace

void match_gains(const CsrView& truth, const MatrixView<const int32_t>& ids, int n_threads, float* gains,
                 const Poll& poll) {
  parallel_blocks(
      ids.n_rows, kMatchedRowsPerTask, n_threads,
      [&](int64_t begin, int64_t end, int) {
        for (int64_t i = begin; i < end; ++i) {
          const int32_t* row = ids.row(i);
          for (int64_t j = 0; j < ids.n_cols; ++j) {
            gains[i * ids.n_cols + j] = row[j] < 0 ? 0.0f : value_at(truth, i, row[j]);
          }
        }
      },
      poll);
}

void ideal_gains(const CsrView& truth, const double* weights, int64_t k, int n_threads, double* ideal,
                 const Poll& poll) {
  parallel_blocks(
      truth.n_rows, kMatchedRowsPerTask, n_threads,
      [&](int64_t begin, int64_t end, int) {
        std::vector<double> row;
        for (int64_t i = begin; i < end; ++i) {
          row.clear();
          for (int64_t e = truth.begin(i); e < truth.end(i); ++e) {
            row.push_back(weights ? truth.values[e] * weights[truth.indices[e]] : truth.values[e]);
          }
          const int64_t kept = std::min<int64_t>(k, static_cast<int64_t>(row.size()));
          std::partial_sort(row.begin(), row.begin() + kept, row.end(), std::greater<double>());
          double* out = std::copy_n(row.begin(), kept, ideal + i * k);
          std::fill(out, ideal + (i + 1) * k, 0.0);
        }
      },
      poll);
}

void add_by_label(const MatrixView<const int32_t>& ids, int64_t k, const float* values, const double* row_weights,
                  int64_t n_labels, double* sums) {
  for (int64_t i = 0; i < ids.n_rows; ++i) {
    const double weight = row_weights ? row_weights[i] : 1.0;
    if (weight == 0.0) continue;
    const int32_t* row = ids.row(i);
    for (int64_t j = 0; j < k; ++j) {
      if (row[j] < 0) break;  // padding stands at the end of a row
      if (row[j] >= n_labels) {
        throw std::out_of_range("label id " + std::to_string(row[j]) + " in row " + std::to_string(i) +
                                " is out of range: there are " + std::to_string(n_labels) + " labels");
      }
      sums[row[j]] += values ? weight * values[i * ids.n_cols + j] : weight;
    }
  }
}

void add_by_label(const CsrView& truth, const double* row_weights, double* sums) {
  for (int64_t i = 0; i < truth.n_rows; ++i) {
    const double weight = row_weights ? row_weights[i] : 1.0;
    if (weight == 0.0) continue;
    for (int64_t e = truth.begin(i); e < truth.end(i); ++e) sums[truth.indices[e]] += weight * truth.values[e];
  }
}

}  // namespace lt
