#include "kernels/linear/node_rows.h"

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <string>
#include <utility>

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

namespace {

int64_t fours(int64_t n) { return (n + 3) / 4; }

// Writes the entries of every row: those of the most frequent features, of rarer ones if there are so many, and of
// features of a single row, in this order; and the square of its length.
void place_rows(const CsrView& X, const std::vector<int32_t>& local, char* room, const RowLoop& loop, NodeRows& node) {
  const auto [to_lines, to_values] = node.place(node.n_entries(), room);
  const int32_t n_shared = static_cast<int32_t>(node.n_shared);
  const int32_t begin_of_part[] = {0, static_cast<int32_t>(std::min(kNearFeatures, node.n_shared)), n_shared,
                                   INT32_MAX};
  const auto place = [&](int64_t first, int64_t last) {
    std::vector<int32_t> names;
    std::vector<RowEntry> row;
    for (int64_t i = first; i < last; ++i) {
      if (i + kRowsAhead < last) prefetch_row(X, node.rows[i + kRowsAhead]);
      const int64_t begin = X.begin(node.rows[i]), size = X.row_nnz(node.rows[i]);
      if (static_cast<int64_t>(row.size()) < size + 1) row.resize(size + 1);
      names.resize(std::max<size_t>(names.size(), size));
      for (int64_t p = 0; p < size; ++p) names[p] = local[X.indices[begin + p]];
      int64_t n_written = 0;
      for (int part = 0; part < 3; ++part) {
        const int32_t from = begin_of_part[part], to = begin_of_part[part + 1];
        for (int64_t p = 0; from < to && p < size; ++p) {  // without a branch: which part it is in cannot be foreseen
          row[n_written] = {names[p], X.values[begin + p]};
          n_written += names[p] >= from && names[p] < to;
        }
      }
      int64_t at = node.indptr[i];
      float sq_norm = 0;
      for (int64_t p = 0; p < size; ++p, ++at) {
        to_lines[at] = row[p].feature * kLineStep;
        to_values[at] = row[p].value;
        sq_norm += row[p].value * row[p].value;
      }
      node.ends[i] = at;
      node.sq_norms[i] = sq_norm;
      for (; at < node.indptr[i + 1]; ++at) {
        to_lines[at] = to_lines[at - 1];
        to_values[at] = 0;
      }
    }
  };
  node.ends.resize(node.rows.size());
  node.sq_norms.resize(node.rows.size());
  loop(static_cast<int64_t>(node.rows.size()), place);
}

// The rows of a parent by length, equal ones by number: loops over rows of equal length end where they are expected to.
// All rows of X stay as they come: of those that are descended over from the start, short ones would decide too much.
void order_rows(const CsrView& X, const int32_t* rows, int64_t n, GatherScratch& scratch, NodeRows& node) {
  const auto length_of = [&](int64_t i) { return n < X.n_rows ? fours(X.row_nnz(rows[i])) : 0; };
  int64_t longest = 0;
  for (int64_t i = 0; i < n; ++i) longest = std::max(longest, length_of(i));
  scratch.first.assign(longest + 2, 0);
  for (int64_t i = 0; i < n; ++i) ++scratch.first[length_of(i) + 1];
  for (int64_t length = 0; length < longest; ++length) scratch.first[length + 1] += scratch.first[length];
  node.rows.resize(n);
  node.local_of.resize(n);
  for (int64_t i = 0; i < n; ++i) {
    const int32_t k = scratch.first[length_of(i)]++;
    node.rows[k] = rows[i];
    node.local_of[i] = k;
  }
}

}  // namespace

void gather_rows(const LevelData& data, const DenseRows& dense, int64_t parent, char* room, const RowLoop& loop,
                 GatherScratch& scratch, NodeRows& node) {
  const CsrView& X = data.X;
  const int32_t* numbers = data.parent_rows + data.parent_ptr[parent];
  const float* weight = data.parent_weight ? data.parent_weight + data.parent_ptr[parent] : nullptr;
  const int64_t n = data.parent_ptr[parent + 1] - data.parent_ptr[parent];
  for (int64_t i = 0; i < n; ++i) check_row(X, numbers[i]);
  order_rows(X, numbers, n, scratch, node);
  const std::vector<int32_t>& rows = node.rows;
  scratch.count.resize(X.n_cols);
  scratch.local.resize(X.n_cols);
  node.indptr.assign(1, 0);
  node.indptr.reserve(n + 1);
  scratch.used.resize((X.n_cols + 63) / 64);
  for (int64_t i = 0; i < n; ++i) {
    if (i + kRowsAhead < n) prefetch_row(X, rows[i + kRowsAhead]);
    for (int64_t p = X.begin(rows[i]); p < X.end(rows[i]); ++p) {
      const int32_t f = X.indices[p];
      ++scratch.count[f];
      scratch.used[f >> 6] |= uint64_t{1} << (f & 63);
    }
    node.indptr.push_back(node.indptr.back() + 4 * fours(X.row_nnz(rows[i])));
  }
  // Features in order of their ids, then by falling frequency: as many places are left before a feature as are taken by
  // more frequent ones.
  scratch.first.assign(n + 1, 0);
  for (size_t word = 0; word < scratch.used.size(); ++word) {
    for (uint64_t left = scratch.used[word]; left; left &= left - 1) {
      const int32_t f = static_cast<int32_t>(word * 64 + std::countr_zero(left));
      node.by_id.push_back(f);
      ++scratch.first[scratch.count[f]];
    }
    scratch.used[word] = 0;
  }
  if (static_cast<int64_t>(node.by_id.size()) > kMostFeatures)
    throw std::invalid_argument("the rows of a node have " + std::to_string(node.by_id.size()) +
                                " features, and at most " + std::to_string(kMostFeatures) +
                                " can be trained on: hash them to fewer");
  int32_t taken = 0;
  for (int64_t frequency = n; frequency >= 0; --frequency) taken += std::exchange(scratch.first[frequency], taken);
  node.original.resize(node.by_id.size());
  for (int32_t& f : node.by_id) {
    const int32_t k = scratch.first[scratch.count[f]]++;
    node.original[k] = f;
    scratch.local[f] = k;
    f = k;
  }
  for (const int32_t f : node.original) {
    node.n_shared += scratch.count[f] > 1;
    scratch.count[f] = 0;
  }
  place_rows(X, scratch.local, room, loop, node);
  node.n_sparse = static_cast<int64_t>(node.original.size());
  node.dense = dense;
  for (int64_t f = 0; f < dense.n_cols; ++f) {
    node.by_id.push_back(static_cast<int32_t>(node.original.size()));
    node.original.push_back(static_cast<int32_t>(X.n_cols + f));
  }
  for (int64_t i = 0; i < n; ++i) {
    if (dense.n_cols) node.sq_norms[i] += dense.sq_norms[rows[i]];
    if (data.row_weight || weight) node.row_weight.push_back(data.row_weight ? data.row_weight[rows[i]] : 1.0f);
    if (data.known_row) node.known.push_back(data.known_row[rows[i]]);
  }
  for (int64_t i = 0; weight && i < n; ++i) node.row_weight[node.local_of[i]] *= weight[i];
}

void split_rows(NodeRows& node) {
  if (node.n_shared == node.n_sparse) return;
  for (size_t i = 0; i < node.sq_norms.size(); ++i) {
    int64_t end = node.ends[i];
    float sq = 0;
    for (; end > node.indptr[i] && node.feature(end - 1) >= node.n_shared; --end)
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
    for (int64_t p = node.indptr[i]; p < node.ends[i]; ++p) {
      plain[node.feature(p)] += node.values[p];
      weighted[node.feature(p)] += weight * node.values[p];
    }
    const float* x = node.dense.data + node.rows[i] * node.dense.stride;
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
