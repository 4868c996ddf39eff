// A label filter on a tree: one bit per node of every level, set where an allowed label lies below.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/base/label_filter.h"
#include "kernels/base/topk.h"
#include "kernels/linear/chunk_layer.h"

namespace lt {

// Where the leaves of every node lie, and the leaf of every label. Made once per model, when a filter first asks.
struct LeafIndex {
  std::vector<std::vector<int64_t>> first_leaf;  // per level but the last: (n_nodes + 1), its leaves are consecutive
  std::vector<int32_t> leaf_of_label;            // -1 for a label without a leaf; empty where they are the same
  int64_t n_leaves = 0;

  Positions positions() const {
    return {n_leaves, leaf_of_label.empty() ? nullptr : leaf_of_label.data(),
            static_cast<int64_t>(leaf_of_label.size())};
  }
};

LeafIndex index_leaves(const std::vector<ChunkLayerView>& layers, const int32_t* label_of_leaf);

using TreeBits = std::vector<Bits>;  // one per level, root first; the last is over leaves

// Sets the bits of inner nodes from those of the leaves.
void climb(const std::vector<ChunkLayerView>& layers, TreeBits& bits);

// Filter of one call to beam search.
struct TreeFilter {
  const LeafIndex* leaves = nullptr;
  LabelFilter lists;
};

// How many of `kept` nodes of a level, best first, search has to go on with: `beam` of them, or more, until k allowed
// labels lie below. So k labels come back if there are as many.
int64_t widened(const LeafIndex& leaves, const Bits& leaf_bits, int64_t level, const Scored* nodes, int64_t kept,
                int64_t beam, int64_t k);

}  // namespace lt
