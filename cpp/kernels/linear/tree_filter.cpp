#include "kernels/linear/tree_filter.h"

#include <algorithm>

namespace lt {

namespace {

// First child of a node of the level above `layer`; for node = n_parents, the number of children.
int64_t first_child(const ChunkLayerView& layer, int64_t node) {
  return layer.chunk_children[layer.parent_chunks[node]];
}

}  // namespace

LeafIndex index_leaves(const std::vector<ChunkLayerView>& layers, const int32_t* label_of_leaf) {
  LeafIndex index;
  const int64_t depth = static_cast<int64_t>(layers.size());
  index.n_leaves = layers.back().n_children;
  index.first_leaf.resize(depth - 1);
  for (int64_t t = depth - 2; t >= 0; --t) {
    std::vector<int64_t>& first = index.first_leaf[t];
    first.resize(layers[t].n_children + 1);
    for (int64_t node = 0; node <= layers[t].n_children; ++node) {
      const int64_t child = first_child(layers[t + 1], node);
      first[node] = t + 2 == depth ? child : index.first_leaf[t + 1][child];
    }
  }
  if (!label_of_leaf) return index;
  int32_t most = -1;
  for (int64_t leaf = 0; leaf < index.n_leaves; ++leaf) most = std::max(most, label_of_leaf[leaf]);
  index.leaf_of_label.assign(static_cast<size_t>(most) + 1, -1);
  for (int64_t leaf = 0; leaf < index.n_leaves; ++leaf)
    if (label_of_leaf[leaf] >= 0) index.leaf_of_label[label_of_leaf[leaf]] = static_cast<int32_t>(leaf);
  return index;
}

void climb(const std::vector<ChunkLayerView>& layers, TreeBits& bits) {
  for (int64_t t = static_cast<int64_t>(layers.size()) - 2; t >= 0; --t) {
    bits[t].assign(layers[t].n_children, false);
    for (int64_t node = 0; node < layers[t].n_children; ++node)
      if (bits[t + 1].any(first_child(layers[t + 1], node), first_child(layers[t + 1], node + 1))) bits[t].set(node);
  }
}

int64_t widened(const LeafIndex& leaves, const Bits& leaf_bits, int64_t level, const Scored* nodes, int64_t kept,
                int64_t beam, int64_t k) {
  const std::vector<int64_t>& first = leaves.first_leaf[level];
  int64_t found = 0, taken = 0;
  while (taken < kept && (taken < beam || found < k)) {
    const int32_t node = nodes[taken++].id;
    if (found < k) found += leaf_bits.count(first[node], first[node + 1], k - found);
  }
  return taken;
}

}  // namespace lt
