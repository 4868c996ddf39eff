#include "kernels/linear/node_rows.h"

#include <algorithm>

namespace lt {

DenseCopy::DenseCopy(const MatrixView<const float>& matrix) {
  const int64_t n = matrix.n_cols ? matrix.n_rows : 0, width = (matrix.n_cols + 15) / 16 * 16;
  sq_norms_.reserve(n);
  for (int64_t i = 0; i < n; ++i) {
    float sq = 0;
    for (int64_t f = 0; f < matrix.n_cols; ++f) sq += matrix.row(i)[f] * matrix.row(i)[f];
    sq_norms_.push_back(sq);
  }
  if (width != matrix.n_cols) {
    padded_.assign(n * width, 0.0f);
    for (int64_t i = 0; i < n; ++i)
      std::copy(matrix.row(i), matrix.row(i) + matrix.n_cols, padded_.begin() + i * width);
  }
  rows_ = {matrix.n_cols, padded_.empty() ? matrix.data : padded_.data(), width, sq_norms_.data()};
}

void gather_rows(const LevelData& data, const DenseRows& dense, int64_t parent, char* room, GatherScratch& scratch,
                 NodeRows& node) {
  const CsrView& X = data.X;
  const int32_t* rows = data.parent_rows + data.parent_ptr[parent];
  const float* weight = data.parent_weight ? data.parent_weight + data.parent_ptr[parent] : nullptr;
  const int64_t n = data.parent_ptr[parent + 1] - data.parent_ptr[parent];
  scratch.count.resize(X.n_cols);
  scratch.local.resize(X.n_cols);
  node.indptr.assign(1, 0);
  node.indptr.reserve(n + 1);
  for (int64_t i = 0; i < n; ++i) check_row(X, rows[i]);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t p = X.begin(rows[i]); p < X.end(rows[i]); ++p)
      if (scratch.count[X.indices[p]]++ == 0) node.original.push_back(X.indices[p]);
    node.indptr.push_back(node.indptr.back() + X.row_nnz(rows[i]));
  }
  // Falling frequency, then feature id, as one number each.
  scratch.keys.clear();
  for (int32_t f : node.original)
    scratch.keys.push_back(static_cast<uint64_t>(~static_cast<uint32_t>(scratch.count[f])) << 32 |
                           static_cast<uint32_t>(f));
  std::sort(scratch.keys.begin(), scratch.keys.end());
  scratch.next.resize(node.original.size());
  int64_t nnz = 0;
  for (size_t k = 0; k < scratch.keys.size(); ++k) {
    const int32_t f = static_cast<int32_t>(scratch.keys[k] & 0xFFFFFFFFu);
    node.original[k] = f;
    scratch.local[f] = static_cast<int32_t>(k);
    scratch.next[k] = nnz;
    nnz += scratch.count[f];
    node.n_shared += scratch.count[f] > 1;
    scratch.count[f] = 0;
  }
  // Entries of a row lie by falling frequency of their feature: the solver prefetches the rare ones, at the end. To the
  // columns and back is that order, without sorting any row.
  ColumnEntry* columns = reinterpret_cast<ColumnEntry*>(room ? room + NodeRows::entry_bytes(nnz) : nullptr);
  if (!columns) {
    scratch.columns.resize(nnz);
    columns = scratch.columns.data();
  }
  for (int64_t i = 0; i < n; ++i)
    for (int64_t p = X.begin(rows[i]); p < X.end(rows[i]); ++p)
      columns[scratch.next[scratch.local[X.indices[p]]]++] = {static_cast<int32_t>(i), X.values[p]};
  const auto [to_indices, to_values] = node.place(nnz, room);
  std::vector<int64_t>& next = node.indptr;  // moved on by one row while it is written to, and then back
  int64_t at = 0;
  for (size_t k = 0; k < scratch.keys.size(); ++k)
    for (; at < scratch.next[k]; ++at) {
      const int64_t to = next[columns[at].row]++;
      to_indices[to] = static_cast<int32_t>(k);
      to_values[to] = columns[at].value;
    }
  std::move_backward(next.begin(), next.end() - 1, next.end());
  next[0] = 0;
  node.n_sparse = static_cast<int64_t>(node.original.size());
  node.dense = dense;
  node.dense_rows = rows;
  for (int64_t f = 0; f < dense.n_cols; ++f) node.original.push_back(static_cast<int32_t>(X.n_cols + f));
  node.sq_norms.reserve(n);
  for (int64_t i = 0; i < n; ++i) {
    float sq_norm = 0;
    for (int64_t p = node.indptr[i]; p < node.indptr[i + 1]; ++p) sq_norm += node.values[p] * node.values[p];
    node.sq_norms.push_back(dense.n_cols ? sq_norm + dense.sq_norms[rows[i]] : sq_norm);
    if (data.row_weight || weight)
      node.row_weight.push_back((data.row_weight ? data.row_weight[rows[i]] : 1.0f) * (weight ? weight[i] : 1.0f));
    if (data.known_row) node.known.push_back(data.known_row[rows[i]]);
  }
}

void split_rows(NodeRows& node) {
  if (node.n_shared == node.n_sparse) return;
  for (size_t i = 0; i < node.sq_norms.size(); ++i) {
    int64_t end = node.indptr[i + 1];
    float sq = 0;
    for (; end > node.indptr[i] && node.indices[end - 1] >= node.n_shared; --end)
      sq += node.values[end - 1] * node.values[end - 1];
    node.shared_ends.push_back(end);
    node.single_sq.push_back(sq);
  }
}

void sum_rows(NodeRows& node) {
  const size_t d = node.original.size(), n = node.sq_norms.size();
  std::vector<double> plain(d, 0.0), weighted(d, 0.0);
  for (size_t i = 0; i < n; ++i) {
    const double weight = node.row_weight.empty() ? 1.0 : node.row_weight[i];
    for (int64_t p = node.indptr[i]; p < node.indptr[i + 1]; ++p) {
      plain[node.indices[p]] += node.values[p];
      weighted[node.indices[p]] += weight * node.values[p];
    }
    const float* x = node.dense.data + node.dense_rows[i] * node.dense.stride;
    for (int64_t f = 0; f < node.dense.n_cols; ++f) {
      plain[node.n_sparse + f] += x[f];
      weighted[node.n_sparse + f] += weight * x[f];
    }
  }
  for (double& x : plain) x /= static_cast<double>(n);
  node.mean.assign(plain.begin(), plain.end());
  node.weighted_sum.assign(weighted.begin(), weighted.end());
}

}  // namespace lt
