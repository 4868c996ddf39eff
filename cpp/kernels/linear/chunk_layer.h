// The weights of one tree level in the layout that search reads.
//
// The children of a parent are cut into chunks of at most kMaxChunk. A chunk stores its weights feature by feature:
//
//   features   sorted ids of the features that any child uses           (n_features of the chunk)
//   entry_ptr  where each feature's entries begin, relative to the chunk (n_features + 1)
//   child      position of the child inside the chunk, 16 bits          (n_entries)
//   value      its weight                                               (n_entries)
//
// so that a non-zero of the query costs one look-up and then reads consecutive memory. The look-up goes through a small
// directory: features with the same id >> shift share a bucket, and a bucket is a range of `features`.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "kernels/base/parallel.h"
#include "kernels/base/raw_vector.h"
#include "kernels/base/slabs.h"
#include "kernels/base/views.h"

namespace lt {

constexpr int64_t kMaxChunk = 4096;
constexpr int64_t kMostEntries = UINT32_MAX;  // of a chunk: offsets within it have 32 bits

// How weights are held: as floats; as the upper halves of floats; or as whole numbers -127 .. 127 that count steps of
// their child's `step`.
enum class WeightType { f32, bf16, int8 };

// Borrowed view of a layer; the arrays may be memory-mapped.
struct ChunkLayerView {
  int64_t n_parents = 0;
  int64_t n_children = 0;
  int64_t n_chunks = 0;
  int64_t n_features = 0;                   // width of the queries
  const int64_t* parent_chunks = nullptr;   // (n_parents + 1): chunks of a parent
  const int64_t* chunk_children = nullptr;  // (n_chunks + 1): children of a chunk
  const int64_t* feature_ptr = nullptr;   // (n_chunks + 1): into features; into entry_ptr after adding the chunk index
  const int64_t* entry_base = nullptr;    // (n_chunks + 1): into child and value
  const int64_t* bucket_ptr = nullptr;    // (n_chunks + 1): into buckets
  const uint8_t* bucket_shift = nullptr;  // (n_chunks)
  const uint32_t* buckets = nullptr;      // per chunk: first position in features of each bucket, and the end
  const int32_t* features = nullptr;
  const uint32_t* entry_ptr = nullptr;
  const uint16_t* child = nullptr;
  WeightType precision = WeightType::f32;
  const float* value = nullptr;  // one of the three, according to `precision`
  const uint16_t* value_bf16 = nullptr;
  const int8_t* value_int8 = nullptr;
  const float* step = nullptr;  // (n_children), for int8
  const float* bias = nullptr;  // (n_children), already times the constant feature
};

// An entry in the units of the layer: of int8 layers, in steps of its child.
inline float value_of_entry(const ChunkLayerView& layer, int64_t entry) {
  switch (layer.precision) {
    case WeightType::int8:
      return static_cast<float>(layer.value_int8[entry]);
    case WeightType::bf16:
      return std::bit_cast<float>(static_cast<uint32_t>(layer.value_bf16[entry]) << 16);
    default:
      return layer.value[entry];
  }
}

// The weight itself.
inline float weight_of_entry(const ChunkLayerView& layer, int64_t entry, int64_t child) {
  const float value = value_of_entry(layer, entry);
  return layer.precision == WeightType::int8 ? value * layer.step[child] : value;
}

// The same arrays, owned.
struct ChunkLayer {
  std::vector<int64_t> parent_chunks, chunk_children, feature_ptr, entry_base, bucket_ptr;
  std::vector<uint8_t> bucket_shift;
  RawVector<uint32_t> buckets;
  RawVector<int32_t> features;
  RawVector<uint32_t> entry_ptr;
  RawVector<uint16_t> child;
  RawVector<float> value;
  std::vector<float> bias;
};

// One chunk, before it is put beside the others.
struct Chunk {
  int64_t n_features = 0, n_entries = 0;
  int32_t* features = nullptr;    // (n_features), sorted
  uint32_t* entry_ptr = nullptr;  // (n_features + 1)
  float* value = nullptr;         // (n_entries)
  uint16_t* child = nullptr;      // (n_entries)
  Slabs::Piece memory;

  Chunk() = default;
  // With room for so many, to be written.
  Chunk(int64_t n_features, int64_t n_entries, Slabs& slabs);
};

// Cuts the children of every parent into chunks: fills parent_chunks and chunk_children.
void plan_chunks(int64_t n_parents, const int64_t* child_ptr, ChunkLayer& layer);

// Throws std::invalid_argument for a chunk with more entries than `most`.
void check_entries(int64_t n_entries, int64_t n_children, int64_t most = kMostEntries);

// Puts chunks one after the other (each is freed as it is copied) and builds the directories.
void join_chunks(std::vector<Chunk>& chunks, int64_t n_features, Team& team, ChunkLayer& layer);

// A layer from weights by child, (n_children, n_features) CSR; `child_ptr` (n_parents + 1) cuts the children.
void build_layer(const CsrView& weights, const float* bias, int64_t n_parents, const int64_t* child_ptr, int n_threads,
                 ChunkLayer& layer, int64_t most_entries = kMostEntries);

// The other way round: weights by child, as CSR arrays, from a layer that has been checked and holds floats.
struct ChildWeights {
  std::vector<int64_t> indptr;  // (n_children + 1)
  std::vector<int32_t> indices;
  std::vector<float> values;
};
ChildWeights weights_by_child(const ChunkLayerView& layer);

// Throws std::invalid_argument if the arrays of a view (read from a file, say) do not fit together.
void check_layer(const ChunkLayerView& layer, int64_t n_features_total, int64_t n_entry_ptr, int64_t n_entries,
                 int64_t n_buckets, int n_threads);

}  // namespace lt
