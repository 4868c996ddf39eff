// Top-down beam search over chunked layers.
//
// Scores along a path are kept as sums of logarithms (never as products, which underflow) and turned into products,
// where the post-processor wants one, at the last level. Every transform but `noop` is non-positive in the log
// domain, so a node's score bounds its descendants': parents are expanded best first, and one that cannot reach the
// k-th candidate any more is skipped. That changes no answer.
//
// Queries are taken in blocks. Within a block, parents of equal rank in their query's beam are expanded together and in
// order of parent, so that the block reads each chunk once from far memory.
//
// Under a label filter, nodes with no allowed label below them are no candidates, chunks of such nodes are not scored,
// and the beam widens until k allowed labels lie below it (see tree_filter.h).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/base/parallel.h"
#include "kernels/base/topk.h"
#include "kernels/base/views.h"
#include "kernels/linear/chunk_layer.h"
#include "kernels/linear/dense_table.h"
#include "kernels/linear/tree_filter.h"

namespace lt {

// How a raw score z becomes part of a path score.
enum class Transform : int32_t {
  noop = 0,         // the path score is z of the last level
  hinge = 1,        // exp(-max(0, 1 - z)^p), multiplied along the path
  sigmoid = 2,      // 1 / (1 + exp(-z)), multiplied
  log_hinge = 3,    // -max(0, 1 - z)^p, added
  log_sigmoid = 4,  // -log(1 + exp(-z)), added
};

struct PostProcessor {
  Transform transform = Transform::hinge;
  int32_t power = 3;
};

struct SearchModel {
  std::vector<ChunkLayerView> layers;      // root first; layers[t].n_parents == layers[t - 1].n_children
  std::vector<DenseTable> tables;          // one per layer for queries with a dense block, or none
  std::vector<PostProcessor> post;         // one per layer
  const int32_t* label_of_leaf = nullptr;  // (n_children of the last layer), or null for the identity
};

// Queries: sparse rows, or dense ones, or sparse ones with a dense block (`matrix`) for the last columns; with
// `normalize` they count as scaled to unit length.
struct Queries {
  bool dense = false;
  bool normalize = false;
  CsrView sparse;
  MatrixView<const float> matrix;

  bool blocks() const { return !dense && matrix.n_cols > 0; }

  int64_t n() const { return dense ? matrix.n_rows : sparse.n_rows; }
};

struct SearchScratch;  // buffers of one worker
using ScratchPtr = std::shared_ptr<SearchScratch>;
ScratchPtr make_scratch();
int64_t entries_read(const SearchScratch& scratch);  // weights that sparse queries added up with it: the work of search

// Writes the k best labels of each query, (n, k), best first, ties to the smaller label. `beams` has one width per
// layer but the last. Scratch holds one entry per thread and is kept by the caller between calls.
bool beam_search(const SearchModel& model, const Queries& queries, const std::vector<int64_t>& beams, int64_t k,
                 int n_threads, std::vector<ScratchPtr>& scratch, int32_t* ids, float* scores, const Poll& poll = {},
                 const TreeFilter* filter = nullptr);

// How many of n queries are taken together: four blocks per thread, so that none waits long for the last, and not too
// small: a block reads every chunk once for all its queries. No answer depends on it.
int64_t search_block(int64_t n, int n_threads);

// Raw scores of all children of one layer, out: (n, n_children); no beam, no post-processor. `table`: of the layer, for
// queries with a dense block.
bool score_layer(const ChunkLayerView& layer, const DenseTable* table, const Queries& queries, int n_threads,
                 float* out, const Poll& poll = {});

}  // namespace lt
