#include "kernels/linear/chunk_layer.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

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

Chunk::Chunk(int64_t n_features, int64_t n_entries, Slabs& slabs) : n_features(n_features), n_entries(n_entries) {
  memory = slabs.take(4 * (2 * n_features + 1 + n_entries) + 2 * n_entries);
  features = reinterpret_cast<int32_t*>(memory.get());
  entry_ptr = reinterpret_cast<uint32_t*>(features + n_features);
  value = reinterpret_cast<float*>(entry_ptr + n_features + 1);
  child = reinterpret_cast<uint16_t*>(value + n_entries);
}

void join_chunks(std::vector<Chunk>& chunks, int64_t n_features, Team& team, ChunkLayer& layer) {
  const auto n_chunks = static_cast<int64_t>(chunks.size());
  layer.feature_ptr.assign(1, 0);
  layer.entry_base.assign(1, 0);
  layer.bucket_ptr.assign(1, 0);
  for (const Chunk& chunk : chunks) {
    // About eight features a bucket: short enough to search in one or two cache lines.
    int shift = 0;
    while ((int64_t{1} << shift) * std::max<int64_t>(1, chunk.n_features) < 8 * n_features && shift < 31) ++shift;
    layer.bucket_shift.push_back(static_cast<uint8_t>(shift));
    layer.bucket_ptr.push_back(layer.bucket_ptr.back() + (n_features >> shift) + 2);
    layer.feature_ptr.push_back(layer.feature_ptr.back() + chunk.n_features);
    layer.entry_base.push_back(layer.entry_base.back() + chunk.n_entries);
  }
  layer.buckets.resize(layer.bucket_ptr.back());
  layer.features.resize(layer.feature_ptr.back());
  layer.entry_ptr.resize(layer.feature_ptr.back() + n_chunks);
  layer.child.resize(layer.entry_base.back());
  layer.value.resize(layer.entry_base.back());
  team.run(n_chunks, [&](int64_t c, int) {
    const Chunk chunk = std::exchange(chunks[c], Chunk());
    const int shift = layer.bucket_shift[c];
    uint32_t* bucket = layer.buckets.data() + layer.bucket_ptr[c];
    int64_t at = 0;
    for (int64_t id = 0; id <= n_features >> shift; ++id) {
      while (at < chunk.n_features && (chunk.features[at] >> shift) < id) ++at;
      *bucket++ = static_cast<uint32_t>(at);
    }
    *bucket = static_cast<uint32_t>(chunk.n_features);
    uint32_t* entry_ptr = layer.entry_ptr.data() + layer.feature_ptr[c] + c;
    std::copy_n(chunk.features, chunk.n_features, layer.features.data() + layer.feature_ptr[c]);
    std::copy_n(chunk.entry_ptr, chunk.n_features, entry_ptr);
    entry_ptr[chunk.n_features] = static_cast<uint32_t>(chunk.n_entries);
    std::copy_n(chunk.child, chunk.n_entries, layer.child.data() + layer.entry_base[c]);
    std::copy_n(chunk.value, chunk.n_entries, layer.value.data() + layer.entry_base[c]);
  });
}

void build_layer(const CsrView& weights, const float* bias, int64_t n_parents, const int64_t* child_ptr, int n_threads,
                 ChunkLayer& layer, int64_t most_entries) {
  plan_chunks(n_parents, child_ptr, layer);
  layer.bias.assign(bias, bias + weights.n_rows);
  std::vector<Chunk> chunks(layer.chunk_children.size() - 1);
  struct Worker {
    std::vector<uint32_t> count;  // by feature, zero between chunks
    std::vector<int32_t> features;
    Slabs slabs;
  };
  std::vector<Worker> workers(std::max(n_threads, 1));
  Team team(n_threads);
  team.run(static_cast<int64_t>(chunks.size()), [&](int64_t c, int worker) {
    auto& [count, features, slabs] = workers[worker];
    count.resize(weights.n_cols);
    features.clear();
    const int64_t first = layer.chunk_children[c], last = layer.chunk_children[c + 1];
    check_entries(weights.begin(last) - weights.begin(first), last - first, most_entries);
    for (int64_t p = weights.begin(first); p < weights.begin(last); ++p)
      if (count[weights.indices[p]]++ == 0) features.push_back(weights.indices[p]);
    std::sort(features.begin(), features.end());
    Chunk& chunk = chunks[c];
    chunk = Chunk(static_cast<int64_t>(features.size()), weights.begin(last) - weights.begin(first), slabs);
    std::copy(features.begin(), features.end(), chunk.features);
    uint32_t total = 0;
    for (int64_t k = 0; k < chunk.n_features; ++k) {
      chunk.entry_ptr[k] = total;
      // From here on the count of a feature is where its next entry goes.
      total += std::exchange(count[features[k]], total);
    }
    chunk.entry_ptr[chunk.n_features] = total;
    for (int64_t child = first; child < last; ++child)
      for (int64_t p = weights.begin(child); p < weights.end(child); ++p) {
        const uint32_t at = count[weights.indices[p]]++;
        chunk.child[at] = static_cast<uint16_t>(child - first);
        chunk.value[at] = weights.values[p];
      }
    for (int32_t f : features) count[f] = 0;
  });
  join_chunks(chunks, weights.n_cols, team, layer);
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
