// Trains the classifiers of one tree level: for every parent, its children against each other over the parent's rows.
//
// Steps, each parallel and each with the same cut for any number of threads:
//   1. gather the rows of a parent and rename its features in order of falling frequency (once per parent);
//   2. solve its children 16 at a time (the unit of work: parent x block of 16 siblings);
//   3. prune, and turn the blocks into chunks for search.
// Parents are taken in batches whose gathered rows fit into `batch_bytes`. On a machine with several NUMA nodes,
// threads are pinned to them in turn and gathered rows are copied to each node that solves with them; the copies share
// `batch_bytes`, and a parent whose rows are more than that is not copied. The bits do not depend on any of this.
#pragma once

#include <cstdint>

#include "kernels/base/parallel.h"
#include "kernels/base/seats.h"
#include "kernels/base/views.h"
#include "kernels/linear/chunk_layer.h"
#include "kernels/linear/lane_problem.h"

namespace lt {

struct LevelData {
  CsrView X;  // (n, d) training rows
  // Further columns of the same rows, (n, e), features d .. d + e - 1; none if it has no columns.
  MatrixView<const float> dense;
  int64_t n_parents = 0;
  const int64_t* parent_ptr = nullptr;     // (n_parents + 1)
  const int32_t* parent_rows = nullptr;    // rows each parent trains on, ascending
  const float* parent_weight = nullptr;    // per row of a parent, or null: multiplies negative_cost there
  const int64_t* child_ptr = nullptr;      // (n_parents + 1): children of each parent, consecutive
  const int64_t* positive_ptr = nullptr;   // (n_children + 1)
  const int32_t* positive_rows = nullptr;  // positive rows of each child, ascending, all among its parent's rows
  const float* positive_sign = nullptr;    // per positive: target, -1 or more (1 unless soft), or null
  const float* positive_cost = nullptr;    // per positive
  const float* negative_cost = nullptr;    // (n_children)
  const float* row_weight = nullptr;       // (n) or null: multiplies negative_cost
  // Where training begins, and what it is pulled to instead of zero: weights (n_children, d) and biases. Null: zero.
  // The layer then holds the differences from it. Dual solver only.
  const CsrView* start = nullptr;
  const float* start_bias = nullptr;  // (n_children), times the constant feature
  // Rows (n) that the start was trained on, and which positives (per positive) it had then: their dual variables are
  // read off the start, and training goes on from there. Both or neither.
  const uint8_t* known_row = nullptr;
  const uint8_t* known_positive = nullptr;

  int64_t n_features() const { return X.n_cols + dense.n_cols; }
};

struct LevelParams {
  SolverParams solver;
  bool dual = true;
  float threshold = 0.1f;      // weights below it in absolute value are dropped
  float prune_budget = -1.0f;  // if not negative, instead: by how much of itself dropping may raise the objective
  uint64_t seed = 0;
  int64_t first_child = 0;  // number of child 0 in the whole level, when only a part of it is trained
  int64_t batch_bytes = int64_t{1} << 30;
  // What the threads may take beside the batch: as many are started as the largest parent leaves room for, one at
  // least.
  int64_t scratch_bytes = INT64_MAX;
  int64_t most_entries = kMostEntries;  // of a chunk; more are refused
  // Where the rows of a parent go that are more than a batch: memory that the caller lends, say of a mapped file. Too
  // small or null: they go to memory of the kernel's own.
  char* room = nullptr;  // aligned to 64 bytes
  int64_t room_bytes = 0;
  // Shared with levels that are trained at the same time, or null; upper levels, which have few and long tasks, have
  // lower ranks.
  Seats* seats = nullptr;
  int rank = 0;
};

// Bytes that gathered rows take in a batch, or in the room above: the entries, and up to three zeros after each row.
inline int64_t gathered_bytes(int64_t n_rows, int64_t nnz) { return 8 * nnz + 68 * n_rows + 64; }

// Bytes that a thread takes at most while it gathers and solves for a parent with so many rows and entries in them;
// n_dense columns come besides n_cols sparse ones.
int64_t worker_bytes(int64_t n_rows, int64_t nnz, int64_t n_cols, int64_t n_dense, bool dual);

struct LevelReport {
  int threads = 0;          // started
  int64_t unconverged = 0;  // children that hit max_iter
  int64_t iterations = 0;   // summed over children
  int64_t copies = 0;       // of the rows of a parent, for another NUMA node
};

// Throws std::invalid_argument unless the rows of parents and of positives ascend, within X, and ranges fit together.
// Columns of X are checked by train_level, row by row as it gathers them.
void check_level(const LevelData& data, int64_t n_parent_rows, int64_t n_positives);

// Returns false if poll asked to stop (the layer is then unusable).
bool train_level(const LevelData& data, const LevelParams& params, int n_threads, ChunkLayer& layer,
                 LevelReport& report, const Poll& poll = {});

}  // namespace lt
