#include "kernels/linear/chunk_layer.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "kernels/base/aligned_block.h"
#include "kernels/base/parallel.h"

namespace lt {

void plan_chunks(int64_t n_parents, const int64_t* child_ptr, ChunkLayer& layer) {
  layer.parent_chunks.assign(1, 0);
  layer.chunk_children.assign(1, 0);
  for (int64_t parent = 0; parent < n_parents; ++parent) {
    const int64_t n = child_ptr[parent + 1] - child_ptr[parent];
    const int64_t n_chunks = (n + kMaxChunk - 1) / kMaxChunk;
    for (int64_t c = 0; c < n_chunks; ++c)
      layer.chunk_children.push_back(std::min(child_ptr[parent + 1], child_ptr[parent] + (c + 1) * kMaxChunk));
    layer.parent_chunks.push_back(static_cast<int64_t>(layer.chunk_children.size()) - 1);
  }
}

void check_entries(int64_t n_entries, int64_t n_children, int64_t most) {
  if (n_entries > most)
    throw std::invalid_argument(std::to_string(n_children) + " labels have " + std::to_string(n_entries) +
                                " weights together, and a search layer holds at most " + std::to_string(most) +
                                " of so many labels: raise threshold or prune_budget, so that fewer are kept");
}

void join_chunks(std::vector<Chunk>& chunks, int64_t n_features, ChunkLayer& layer) {
  int64_t n_rows = 0, n_entries = 0;
  for (const Chunk& chunk : chunks) {
    n_rows += static_cast<int64_t>(chunk.features.size());
    n_entries += static_cast<int64_t>(chunk.child.size());
  }
  layer.features.reserve(n_rows);
  layer.entry_ptr.reserve(n_rows + chunks.size());
  layer.child.reserve(n_entries);
  layer.value.reserve(n_entries);
  ask_for_huge_pages(layer.child.data(), n_entries * 2);
  ask_for_huge_pages(layer.value.data(), n_entries * 4);
  layer.feature_ptr.assign(1, 0);
  layer.entry_base.assign(1, 0);
  layer.bucket_ptr.assign(1, 0);
  for (Chunk& chunk : chunks) {
    if (chunk.entry_ptr.empty()) chunk.entry_ptr.push_back(0);
    // About eight features a bucket: short enough to search in one or two cache lines.
    const int64_t n = std::max<int64_t>(1, static_cast<int64_t>(chunk.features.size()));
    int shift = 0;
    while ((int64_t{1} << shift) * n < 8 * n_features && shift < 31) ++shift;
    const int64_t n_buckets = (n_features >> shift) + 1;
    int64_t at = 0;
    for (int64_t bucket = 0; bucket < n_buckets; ++bucket) {
      while (at < static_cast<int64_t>(chunk.features.size()) && (chunk.features[at] >> shift) < bucket) ++at;
      layer.buckets.push_back(static_cast<uint32_t>(at));
    }
    layer.buckets.push_back(static_cast<uint32_t>(chunk.features.size()));
    layer.bucket_shift.push_back(static_cast<uint8_t>(shift));
    layer.bucket_ptr.push_back(static_cast<int64_t>(layer.buckets.size()));
    layer.features.insert(layer.features.end(), chunk.features.begin(), chunk.features.end());
    layer.entry_ptr.insert(layer.entry_ptr.end(), chunk.entry_ptr.begin(), chunk.entry_ptr.end());
    layer.child.insert(layer.child.end(), chunk.child.begin(), chunk.child.end());
    layer.value.insert(layer.value.end(), chunk.value.begin(), chunk.value.end());
    layer.feature_ptr.push_back(static_cast<int64_t>(layer.features.size()));
    layer.entry_base.push_back(static_cast<int64_t>(layer.child.size()));
    chunk = Chunk();
  }
}

void build_layer(const CsrView& weights, const float* bias, int64_t n_parents, const int64_t* child_ptr, int n_threads,
                 ChunkLayer& layer, int64_t most_entries) {
  plan_chunks(n_parents, child_ptr, layer);
  layer.bias.assign(bias, bias + weights.n_rows);
  std::vector<Chunk> chunks(layer.chunk_children.size() - 1);
  std::vector<std::vector<uint32_t>> counts(std::max(n_threads, 1));  // by feature, zero between chunks
  parallel_for(static_cast<int64_t>(chunks.size()), n_threads, [&](int64_t c, int worker) {
    std::vector<uint32_t>& count = counts[worker];
    count.resize(weights.n_cols);
    Chunk& chunk = chunks[c];
    const int64_t first = layer.chunk_children[c], last = layer.chunk_children[c + 1];
    check_entries(weights.begin(last) - weights.begin(first), last - first, most_entries);
    for (int64_t p = weights.begin(first); p < weights.begin(last); ++p)
      if (count[weights.indices[p]]++ == 0) chunk.features.push_back(weights.indices[p]);
    std::sort(chunk.features.begin(), chunk.features.end());
    uint32_t total = 0;
    for (int32_t f : chunk.features) {
      chunk.entry_ptr.push_back(total);
      const uint32_t n = count[f];
      count[f] = total;  // from here on: where the next entry of the feature goes
      total += n;
    }
    chunk.entry_ptr.push_back(total);
    chunk.child.resize(total);
    chunk.value.resize(total);
    for (int64_t child = first; child < last; ++child)
      for (int64_t p = weights.begin(child); p < weights.end(child); ++p) {
        const uint32_t at = count[weights.indices[p]]++;
        chunk.child[at] = static_cast<uint16_t>(child - first);
        chunk.value[at] = weights.values[p];
      }
    for (int32_t f : chunk.features) count[f] = 0;
  });
  join_chunks(chunks, weights.n_cols, layer);
}

ChildWeights weights_by_child(const ChunkLayerView& layer) {
  ChildWeights out;
  std::vector<int64_t>& next = out.indptr;  // two ahead while counting, one ahead while writing
  next.assign(layer.n_children + 2, 0);
  const int64_t n_entries = layer.entry_base[layer.n_chunks];
  for (int64_t c = 0; c < layer.n_chunks; ++c)
    for (int64_t e = layer.entry_base[c]; e < layer.entry_base[c + 1]; ++e)
      ++next[layer.chunk_children[c] + layer.child[e] + 2];
  for (int64_t child = 0; child < layer.n_children; ++child) next[child + 2] += next[child + 1];
  out.indices.resize(n_entries);
  out.values.resize(n_entries);
  for (int64_t c = 0; c < layer.n_chunks; ++c) {
    const uint32_t* entry_ptr = layer.entry_ptr + layer.feature_ptr[c] + c;
    for (int64_t f = layer.feature_ptr[c]; f < layer.feature_ptr[c + 1]; ++f, ++entry_ptr)
      for (int64_t e = layer.entry_base[c] + entry_ptr[0]; e < layer.entry_base[c] + entry_ptr[1]; ++e) {
        const int64_t at = next[layer.chunk_children[c] + layer.child[e] + 1]++;
        out.indices[at] = layer.features[f];
        out.values[at] = layer.value[e];
      }
  }
  next.pop_back();
  return out;
}

namespace {

void require(bool condition, const char* what) {
  if (!condition) throw std::invalid_argument(std::string("damaged search layer: ") + what);
}

// Offsets that start at 0, never fall, and end at `end`.
void require_offsets(const int64_t* offsets, int64_t n, int64_t end, const char* what) {
  require(offsets[0] == 0 && offsets[n] == end, what);
  for (int64_t i = 0; i < n; ++i) require(offsets[i] <= offsets[i + 1], what);
}

// The loops below look at every value without branching, so that checking runs at the speed of memory.
template <class T>
bool never_falls(const T* offsets, int64_t n) {
  bool ok = true;
  for (int64_t i = 0; i < n; ++i) ok &= offsets[i] <= offsets[i + 1];
  return ok;
}

template <class T>
bool all_below(const T* values, int64_t n, T limit) {  // of unsigned values
  bool ok = true;
  for (int64_t i = 0; i < n; ++i) ok &= values[i] < limit;
  return ok;
}

void check_chunk(const ChunkLayerView& layer, int64_t c) {
  const int64_t n = layer.feature_ptr[c + 1] - layer.feature_ptr[c];
  const int64_t width = layer.chunk_children[c + 1] - layer.chunk_children[c];
  const int64_t total = layer.entry_base[c + 1] - layer.entry_base[c];
  const int shift = layer.bucket_shift[c];
  require(width <= kMaxChunk, "a chunk is too wide");
  require(shift < 32 && layer.bucket_ptr[c + 1] - layer.bucket_ptr[c] == (layer.n_features >> shift) + 2,
          "size of a directory");
  const uint32_t* buckets = layer.buckets + layer.bucket_ptr[c];
  const int64_t last = (layer.n_features >> shift) + 1;
  require(buckets[0] == 0 && buckets[last] == n, "ends of a directory");
  require(never_falls(buckets, last), "order of a directory");
  const uint32_t* entry_ptr = layer.entry_ptr + layer.feature_ptr[c] + c;
  require(entry_ptr[0] == 0 && entry_ptr[n] == total, "ends of the entry offsets");
  require(never_falls(entry_ptr, n), "order of the entry offsets");
  // Negative ids are large ones without their sign.
  const auto* features = reinterpret_cast<const uint32_t*>(layer.features + layer.feature_ptr[c]);
  require(all_below(features, n, static_cast<uint32_t>(layer.n_features)), "a feature is out of range");
  require(all_below(layer.child + layer.entry_base[c], total, static_cast<uint16_t>(width)), "a child is out of range");
}

}  // namespace

void check_layer(const ChunkLayerView& layer, int64_t n_features_total, int64_t n_entry_ptr, int64_t n_entries,
                 int64_t n_buckets, int n_threads) {
  require_offsets(layer.parent_chunks, layer.n_parents, layer.n_chunks, "chunks of parents");
  require_offsets(layer.chunk_children, layer.n_chunks, layer.n_children, "children of chunks");
  require_offsets(layer.feature_ptr, layer.n_chunks, n_features_total, "features of chunks");
  require_offsets(layer.entry_base, layer.n_chunks, n_entries, "entries of chunks");
  require_offsets(layer.bucket_ptr, layer.n_chunks, n_buckets, "buckets of chunks");
  require(n_entry_ptr == n_features_total + layer.n_chunks, "entry offsets");
  constexpr int64_t kSmall = 1 << 22;  // entries; done before a thread would have started
  parallel_for(layer.n_chunks, n_entries < kSmall ? 1 : n_threads, [&](int64_t c, int) { check_chunk(layer, c); });
}

}  // namespace lt
