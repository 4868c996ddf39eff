// The rows that the children of one parent train on, gathered from X, and copies of them for NUMA nodes.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "kernels/base/aligned_block.h"
#include "kernels/base/numa.h"
#include "kernels/linear/lane_problem.h"
#include "kernels/linear/level_training.h"

namespace lt {

// The dense columns of all rows as the kernels read them.
struct DenseRows {
  int64_t n_cols = 0;
  const float* data = nullptr;
  int64_t stride = 0;               // floats from row to row, a multiple of 16; zero beyond n_cols
  const float* sq_norms = nullptr;  // (rows)
};

// The same with what it takes to make them so: the squares, and a copy where the columns are no multiple of 16.
class DenseCopy {
 public:
  explicit DenseCopy(const MatrixView<const float>& matrix);
  const DenseRows& rows() const { return rows_; }

 private:
  std::vector<float> padded_, sq_norms_;
  DenseRows rows_;
};

// The rows of one parent, features renamed by falling frequency within the parent.
struct NodeRows {
  std::vector<int32_t> rows;          // numbers in X, shorter rows first unless all are here
  std::vector<int32_t> local_of;      // for the rows in the order of their numbers: where they are among `rows`
  std::vector<int64_t> indptr, ends;  // see LaneRows
  const int32_t* lines = nullptr;     // of the entries, in memory that the caller lent, or of a copy in `own`
  const float* values = nullptr;
  AlignedBlock<char> own;
  std::vector<float> sq_norms;
  std::vector<int64_t> shared_ends;  // empty, or (rows): see LaneRows
  std::vector<float> single_sq;
  std::vector<float> row_weight;    // empty, or (rows): what a row weighs as a negative
  std::vector<uint8_t> known;       // empty, or (rows)
  std::vector<float> mean;          // primal only, (n_features): mean of the rows
  std::vector<float> weighted_sum;  // primal only, (n_features): sum of the rows times their weight
  std::vector<int32_t> original;    // (n_features): feature id of each local feature
  std::vector<int32_t> by_id;       // (n_features): local features in order of their ids
  int64_t n_shared = 0;             // sparse features of more than one row: the first ones
  int64_t n_sparse = 0;             // features that are not dense: the first ones
  DenseRows dense;                  // columns that are not gathered: whole rows are read where they lie

  int32_t feature(int64_t p) const { return static_cast<int32_t>(static_cast<uint32_t>(lines[p]) / kLineStep); }
  int64_t n_entries() const { return indptr.back(); }  // the zeros after each row included
  static int64_t entry_bytes(int64_t n) { return n * static_cast<int64_t>(sizeof(int32_t) + sizeof(float)); }
  // Room for rows with nnz entries together, up to the next line of memory.
  static int64_t most_entry_bytes(int64_t n_rows, int64_t nnz) {
    return (entry_bytes(nnz + 3 * n_rows) + 63) / 64 * 64;
  }

  // Puts n entries into `room` and returns where they may be written.
  std::pair<int32_t*, float*> place(int64_t n, char* room) {
    auto* to_values = reinterpret_cast<float*>(room);
    auto* to_lines = reinterpret_cast<int32_t*>(to_values + n);
    lines = to_lines;
    values = to_values;
    return {to_lines, to_values};
  }

  // The same rows in memory that the calling thread is the first to touch.
  NodeRows copy() const {
    NodeRows out;
    out.rows = rows;
    out.local_of = local_of;
    out.indptr = indptr;
    out.ends = ends;
    out.own = aligned_block<char>(entry_bytes(n_entries()));
    const auto [to_lines, to_values] = out.place(n_entries(), out.own.get());
    std::copy(lines, lines + n_entries(), to_lines);
    std::copy(values, values + n_entries(), to_values);
    out.sq_norms = sq_norms;
    out.shared_ends = shared_ends;
    out.single_sq = single_sq;
    out.row_weight = row_weight;
    out.known = known;
    out.mean = mean;
    out.weighted_sum = weighted_sum;
    out.original = original;
    out.by_id = by_id;
    out.n_shared = n_shared;
    out.n_sparse = n_sparse;
    out.dense = dense;
    return out;
  }

  LaneRows view() const {
    return {static_cast<int64_t>(sq_norms.size()),
            static_cast<int64_t>(original.size()),
            indptr.data(),
            ends.data(),
            lines,
            values,
            sq_norms.data(),
            shared_ends.empty() ? nullptr : shared_ends.data(),
            single_sq.data(),
            n_shared,
            dense.n_cols,
            dense.data,
            dense.stride,
            rows.data(),
            mean.data(),
            weighted_sum.data()};
  }
};

struct RowEntry {
  int32_t feature;
  float value;
};

// A worker's arrays, kept between nodes; `count` (one per feature of X) and `used` (a bit per feature) are zero outside
// gather_rows.
struct GatherScratch {
  std::vector<int32_t> count, local;
  std::vector<uint64_t> used;
  std::vector<int32_t> first;  // of the features that as many rows have, or of the rows that are as long
};

// Calls body(begin, end) for blocks of n rows.
using RowLoop = std::function<void(int64_t n, const std::function<void(int64_t, int64_t)>& body)>;

// Gathers the rows of a parent into `node`, which is empty. `room`: most_entry_bytes for the entries.
void gather_rows(const LevelData& data, const DenseRows& dense, int64_t parent, char* room, const RowLoop& loop,
                 GatherScratch& scratch, NodeRows& node);

// What the primal solver wants to know of a node once, not once per block: fills `mean` and `weighted_sum`.
void sum_rows(NodeRows& node);

// What the dual solver wants to know once: fills `shared_ends` and `single_sq`. Nothing if every feature is shared.
void split_rows(NodeRows& node);

// The gathered rows of a batch of parents, near every worker: a worker on another NUMA node than the one that gathered
// a parent's rows makes a copy for its node when it first needs them.
class Batch {
 public:
  Batch(const NumaNodes& numa, int64_t n_parents, bool copy)
      : numa_(numa), copy_(copy && numa.size() > 1), rows_(n_parents), home_(n_parents, 0) {
    if (!copy_) return;
    copies_.resize(n_parents * numa.size());
    made_ = std::make_unique<std::once_flag[]>(copies_.size());
  }

  NodeRows& gathered_by(int worker, int64_t parent) {
    home_[parent] = numa_.of_worker(worker);
    return rows_[parent];
  }

  const NodeRows& rows(int64_t parent) const { return rows_[parent]; }

  const NodeRows& near(int worker, int64_t parent, std::atomic<int64_t>& n_copies) {
    const int node = numa_.of_worker(worker);
    if (!copy_ || node == home_[parent]) return rows_[parent];
    const int64_t at = parent * numa_.size() + node;
    std::call_once(made_[at], [&] {
      copies_[at] = rows_[parent].copy();
      ++n_copies;
    });
    return copies_[at];
  }

 private:
  const NumaNodes& numa_;
  bool copy_;
  std::vector<NodeRows> rows_, copies_;  // (n_parents), (n_parents, NUMA nodes)
  std::vector<int> home_;                // (n_parents): the NUMA node that gathered
  std::unique_ptr<std::once_flag[]> made_;
};

}  // namespace lt
