#include "kernels/codes/recovery.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/base/best_k.h"
#include "kernels/base/dense.h"

namespace lt {

namespace {

constexpr int64_t kProductsPerTask = 64;  // share a block of rows while it is in cache
constexpr int64_t kVotesPerTask = 16;
constexpr int64_t kPart = 1 << 22;  // numbers of rows: fewer are not worth a thread

}  // namespace

bool top_inner_products(const float* blocks, int64_t n_rows, const float* bias, const MatrixView<const float>& queries,
                        int64_t k, int n_threads, int32_t* ids, float* products, const Poll& poll) {
  const DenseKernels& dense = LT_DISPATCH(dense);
  const int64_t d = queries.n_cols, n = queries.n_rows;
  // Few queries leave threads idle: then each of them looks at a part of the rows, and the parts' best are merged.
  const int64_t tasks = (n + kProductsPerTask - 1) / kProductsPerTask;
  const int64_t wanted = std::min((n_threads + tasks - 1) / std::max<int64_t>(tasks, 1), n_rows * d / kPart);
  const int64_t parts = std::max<int64_t>(wanted, 1);
  const int64_t part_rows = (n_rows / parts + 15) / 16 * 16;
  std::vector<BestK> best(n * parts);  // [query][part]
  auto search = [&](int64_t task, int64_t, int) {
    const int64_t part = task % parts, begin = task / parts * kProductsPerTask;
    const int64_t end = std::min(begin + kProductsPerTask, n);
    const int64_t last = part + 1 == parts ? n_rows : std::min(n_rows, (part + 1) * part_rows);
    for (int64_t q = begin; q < end; ++q) best[q * parts + part].reset(k);
    std::vector<float> found((end - begin) * 16);
    for (int64_t first = part * part_rows; first < last; first += 16) {
      dense.dot_block(queries.row(begin), end - begin, blocks + first * d, d, found.data());
      const int64_t width = std::min<int64_t>(16, last - first);
      for (int64_t q = begin; q < end; ++q)
        for (int64_t i = 0; i < width; ++i)
          best[q * parts + part].push(found[(q - begin) * 16 + i] + (bias ? bias[first + i] : 0.0f),
                                      static_cast<int32_t>(first + i));
    }
    if (parts > 1) return;
    for (int64_t q = begin; q < end; ++q) {
      best[q].write(ids + q * k, products + q * k);
      best[q] = BestK();
    }
  };
  if (!parallel_blocks(tasks * parts, 1, n_threads, search, poll)) return false;
  for (int64_t q = 0; parts > 1 && q < n; ++q) {
    BestK& all = best[q * parts];
    for (int64_t part = 1; part < parts; ++part)
      for (const Scored& item : best[q * parts + part].items) all.push(item.score, item.id);
    all.write(ids + q * k, products + q * k);
  }
  return true;
}

bool inner_products(const float* blocks, int64_t n_rows, const float* bias, const MatrixView<const float>& queries,
                    int n_threads, float* out, const Poll& poll) {
  const DenseKernels& dense = LT_DISPATCH(dense);
  const int64_t d = queries.n_cols;
  auto multiply = [&](int64_t begin, int64_t end, int) {
    std::vector<float> found((end - begin) * 16);
    for (int64_t first = 0; first < n_rows; first += 16) {
      dense.dot_block(queries.row(begin), end - begin, blocks + first * d, d, found.data());
      const int64_t width = std::min<int64_t>(16, n_rows - first);
      for (int64_t q = 0; q < end - begin; ++q)
        for (int64_t i = 0; i < width; ++i)
          out[(begin + q) * n_rows + first + i] = found[q * 16 + i] + (bias ? bias[first + i] : 0.0f);
    }
  };
  return parallel_blocks(queries.n_rows, kProductsPerTask, n_threads, multiply, poll);
}

bool probe_lists(const InvertedLists& lists, const MatrixView<const int32_t>& probes,
                 const MatrixView<const float>& queries, int64_t k, int n_threads, int32_t* ids, float* products,
                 const Poll& poll) {
  const DenseKernels& dense = LT_DISPATCH(dense);
  const int64_t d = queries.n_cols;
  auto search = [&](int64_t begin, int64_t end, int) {
    float found[16];
    for (int64_t q = begin; q < end; ++q) {
      BestK best;
      best.reset(k);
      for (int64_t j = 0; j < probes.n_cols; ++j) {
        const int32_t list = probes.row(q)[j];
        if (list < 0) break;
        if (list >= lists.n_lists) throw std::out_of_range("there is no list " + std::to_string(list));
        for (int64_t first = lists.list_ptr[list]; first < lists.list_ptr[list + 1]; first += 16) {
          dense.dot_block(queries.row(q), 1, lists.blocks + first * d, d, found);
          for (int64_t i = 0; i < 16; ++i)
            if (lists.row_of[first + i] >= 0) best.push(found[i], lists.row_of[first + i]);
        }
      }
      best.write(ids + q * k, products + q * k);
    }
  };
  return parallel_blocks(queries.n_rows, kVotesPerTask, n_threads, search, poll);
}

bool sum_votes(const MatrixView<const int32_t>& neighbors, const MatrixView<const float>& weights,
               const CsrView& labels, int64_t k, int n_threads, int32_t* ids, float* scores, const Poll& poll) {
  struct Scratch {
    std::vector<double> votes;   // (L), zero between queries
    std::vector<uint8_t> named;  // (L), zero between queries
    std::vector<Scored> items;   // labels that a neighbour has
  };
  const int64_t n_tasks = (neighbors.n_rows + kVotesPerTask - 1) / kVotesPerTask;
  std::vector<Scratch> scratch(std::max<int64_t>(1, std::min<int64_t>(n_threads, n_tasks)));
  auto count = [&](int64_t begin, int64_t end, int worker) {
    auto& [votes, named, items] = scratch[worker];
    votes.resize(labels.n_cols);
    named.resize(labels.n_cols);
    for (int64_t q = begin; q < end; ++q) {
      items.clear();
      for (int64_t j = 0; j < neighbors.n_cols; ++j) {
        const int32_t row = neighbors.row(q)[j];
        if (row < 0) break;
        if (row >= labels.n_rows) throw std::out_of_range("row " + std::to_string(row) + " has no labels");
        for (int64_t p = labels.begin(row); p < labels.end(row); ++p) {
          const int32_t label = labels.indices[p];
          if (!named[label]) items.push_back({0, label});
          named[label] = 1;
          votes[label] += static_cast<double>(weights.row(q)[j]) * labels.values[p];
        }
      }
      for (Scored& item : items) {
        item.score = static_cast<float>(votes[item.id]);
        if (!(item.score == item.score)) item.score = -kInf;  // NaN would break the sort
        votes[item.id] = 0;
        named[item.id] = 0;
      }
      const int64_t kept = keep_topk(items.data(), static_cast<int64_t>(items.size()), k);
      write_topk(items.data(), kept, k, ids + q * k, scores + q * k);
    }
  };
  return parallel_blocks(neighbors.n_rows, kVotesPerTask, n_threads, count, poll);
}

}  // namespace lt
