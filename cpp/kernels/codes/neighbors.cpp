#include "kernels/codes/neighbors.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/base/best_k.h"
#include "kernels/base/dense.h"

namespace lt {

namespace {

constexpr float kPositive = std::numeric_limits<float>::denorm_min();  // rows that share nothing are no neighbours
constexpr int64_t kQueriesPerTask = 16;
constexpr int64_t kDenseQueriesPerTask = 64;  // share a block of training rows while it is in cache

int workers(int64_t n_tasks, int n_threads) {
  return static_cast<int>(std::max<int64_t>(1, std::min<int64_t>(n_threads, n_tasks)));
}

int64_t tasks(int64_t n) { return (n + kQueriesPerTask - 1) / kQueriesPerTask; }

}  // namespace

bool sparse_neighbors(const CsrView& postings, const double* row_weights, int64_t n_train, const CsrView& queries,
                      int64_t k, int n_threads, int32_t* ids, float* keys, const Poll& poll) {
  struct Scratch {
    std::vector<float> sums;       // (n_train), zero between queries
    std::vector<int32_t> touched;  // rows whose sum may differ from zero; may name one twice
  };
  std::vector<Scratch> scratch(workers(tasks(queries.n_rows), n_threads));

  auto search = [&](int64_t begin, int64_t end, int worker) {
    auto& sums = scratch[worker].sums;
    auto& touched = scratch[worker].touched;
    sums.resize(n_train);
    BestK best;
    for (int64_t q = begin; q < end; ++q) {
      int64_t n_postings = 0;
      for (int64_t p = queries.begin(q); p < queries.end(q); ++p) n_postings += postings.row_nnz(queries.indices[p]);
      const bool note_touched = n_postings < n_train;  // else looking at every row is cheaper than a list of them
      touched.clear();
      best.reset(k, kPositive);
      for (int64_t p = queries.begin(q); p < queries.end(q); ++p) {
        const int32_t feature = queries.indices[p];
        const float value = queries.values[p];
        for (int64_t e = postings.begin(feature); e < postings.end(feature); ++e) {
          const int32_t row = postings.indices[e];
          if (note_touched && sums[row] == 0) touched.push_back(row);
          sums[row] += value * postings.values[e];
        }
      }
      auto settle = [&](int64_t row) {
        best.push(static_cast<float>(sums[row] * row_weights[row]), static_cast<int32_t>(row));
        sums[row] = 0;  // a second mention of the row now offers nothing
      };
      if (note_touched) {
        for (const int32_t row : touched) settle(row);
      } else {
        for (int64_t row = 0; row < n_train; ++row) settle(row);
      }
      best.write(ids + q * k, keys + q * k);
    }
  };
  return parallel_blocks(queries.n_rows, kQueriesPerTask, n_threads, search, poll);
}

bool dense_neighbors(const float* blocks, const double* row_weights, int64_t n_train,
                     const MatrixView<const float>& queries, int64_t k, int n_threads, int32_t* ids, float* keys,
                     const Poll& poll) {
  const DenseKernels& dense = LT_DISPATCH(dense);
  const int64_t d = queries.n_cols;

  auto search = [&](int64_t begin, int64_t end, int) {
    std::vector<BestK> best(end - begin);
    for (BestK& each : best) each.reset(k, kPositive);
    std::vector<float> products((end - begin) * 16);
    for (int64_t first = 0; first < n_train; first += 16) {
      dense.dot_block(queries.row(begin), end - begin, blocks + first * d, d, products.data());
      const int64_t rows = std::min<int64_t>(16, n_train - first);
      for (int64_t q = 0; q < end - begin; ++q)
        for (int64_t i = 0; i < rows; ++i)
          best[q].push(static_cast<float>(products[q * 16 + i] * row_weights[first + i]),
                       static_cast<int32_t>(first + i));
    }
    for (int64_t q = begin; q < end; ++q) best[q - begin].write(ids + q * k, keys + q * k);
  };
  return parallel_blocks(queries.n_rows, kDenseQueriesPerTask, n_threads, search, poll);
}

namespace {

// Appends allowed labels that have no vote, by id and with the score 0, until there are k. Returns how many there are.
int64_t fill_up(const Bits& allowed, int64_t k, int64_t kept, std::vector<Scored>& items) {
  std::vector<int32_t> voted;
  for (int64_t i = 0; i < kept; ++i) voted.push_back(items[i].id);
  std::sort(voted.begin(), voted.end());
  items.resize(kept);
  for (int64_t label = 0; label < allowed.size() && static_cast<int64_t>(items.size()) < k; ++label)
    if (allowed[label] && !std::binary_search(voted.begin(), voted.end(), static_cast<int32_t>(label)))
      items.push_back({0, static_cast<int32_t>(label)});
  return static_cast<int64_t>(items.size());
}

}  // namespace

bool vote(const MatrixView<const int32_t>& neighbors, const MatrixView<const float>& weights, const CsrView& labels,
          int64_t k, int n_threads, int32_t* ids, float* scores, const Poll& poll, const LabelFilter& filter) {
  struct Scratch {
    std::vector<double> votes;  // (L), zero between queries
    std::vector<Scored> items;  // labels with a vote
    Bits allowed;               // of a query, under a filter with lists per row
  };
  Bits shared;
  if (filter.present()) shared_bits(filter, {labels.n_cols}, shared);
  std::vector<Scratch> scratch(workers(tasks(neighbors.n_rows), n_threads));

  auto count = [&](int64_t begin, int64_t end, int worker) {
    auto& [votes, items, own] = scratch[worker];
    votes.resize(labels.n_cols);
    for (int64_t q = begin; q < end; ++q) {
      items.clear();
      if (filter.per_row()) row_bits(filter, q, shared, {labels.n_cols}, own);
      const Bits* allowed = filter.per_row() ? &own : filter.present() ? &shared : nullptr;
      double total = 0;
      for (int64_t j = 0; j < neighbors.n_cols; ++j) {
        const int32_t row = neighbors.row(q)[j];
        if (row < 0) break;
        if (row >= labels.n_rows) throw std::out_of_range("neighbour " + std::to_string(row) + " has no labels");
        const double weight = weights.row(q)[j];
        total += weight;
        for (int64_t p = labels.begin(row); p < labels.end(row); ++p) {
          const int32_t label = labels.indices[p];
          if (votes[label] == 0) items.push_back({0, label});
          votes[label] += weight * labels.values[p];
        }
      }
      int64_t n = 0;
      for (const Scored& item : items) {
        const float share = static_cast<float>(votes[item.id] / total);
        votes[item.id] = 0;
        if (allowed && !(*allowed)[item.id]) continue;
        if (share > 0) items[n++] = {share, item.id};  // false for NaN, which would break the sort
      }
      int64_t kept = keep_topk(items.data(), n, k);
      if (allowed && kept < k) kept = fill_up(*allowed, k, kept, items);
      write_topk(items.data(), kept, k, ids + q * k, scores + q * k);
    }
  };
  return parallel_blocks(neighbors.n_rows, kQueriesPerTask, n_threads, count, poll);
}

}  // namespace lt
