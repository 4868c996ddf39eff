#include "kernels/linear/chunk_scores.h"

#include "kernels/base/lanes.h"

namespace lt::LT_ISA {

namespace {

// Weights of each type as floats; those of int8 are multiplied by their child's step in the end.
LT_INLINE float weight_of(float value) { return value; }
LT_INLINE float weight_of(int8_t value) { return static_cast<float>(value); }
LT_INLINE float weight_of(uint16_t value) { return __builtin_bit_cast(float, static_cast<uint32_t>(value) << 16); }

constexpr int64_t kAhead = 128;  // entries asked for in advance; the machine notices longer runs by itself
constexpr int kIds = kRegister < 8 ? 8 : kRegister;  // compared at a time
typedef int32_t UnalignedIds __attribute__((vector_size(4 * kRegister), aligned(4)));

// Position of f among features [begin, end), which ascend, or -1. Reads up to kIds features at once, and so stops short
// of `last`, where the array ends.
LT_INLINE int64_t position_of(int32_t f, const int32_t* features, int64_t begin, int64_t end, int64_t last) {
  while (end - begin > 2 * kIds) {
    const int64_t middle = begin + (end - begin) / 2;
    if (features[middle] <= f)
      begin = middle;
    else
      end = middle;
  }
  for (; begin < end && begin + kIds <= last; begin += kIds) {
    uint32_t equal = 0;
    for (int part = 0; part < kIds / kRegister; ++part) {
      const i32xN ids = *reinterpret_cast<const UnalignedIds*>(features + begin + part * kRegister);
      equal |= bits(ids == f) << (part * kRegister);
    }
    if (equal) {
      const int64_t at = begin + __builtin_ctz(equal);
      return at < end ? at : -1;
    }
  }
  for (; begin < end; ++begin)
    if (features[begin] == f) return begin;
  return -1;
}

void approach(const ChunkLayerView& layer, int64_t chunk, const QueryRow& query) {
  const uint32_t* buckets = layer.buckets + layer.bucket_ptr[chunk];
  const int shift = layer.bucket_shift[chunk];
  for (int64_t p = 0; p < query.n; ++p) __builtin_prefetch(buckets + (query.indices[p] >> shift));
}

template <class Value>
LT_INLINE void add_entries(const uint16_t* child, const Value* value, const Lookup* hits, int64_t n_hits, float* z) {
  for (int64_t h = 0; h < n_hits; ++h) {
    const float x = hits[h].x;
    const int64_t end = hits[h].end;
    int64_t e = hits[h].begin;
    for (; e + 4 <= end; e += 4) {  // children of a feature differ: four sums at once
      float* z0 = z + child[e];
      float* z1 = z + child[e + 1];
      float* z2 = z + child[e + 2];
      float* z3 = z + child[e + 3];
      const float s0 = *z0 + x * weight_of(value[e]), s1 = *z1 + x * weight_of(value[e + 1]);
      const float s2 = *z2 + x * weight_of(value[e + 2]), s3 = *z3 + x * weight_of(value[e + 3]);
      *z0 = s0;
      *z1 = s1;
      *z2 = s2;
      *z3 = s3;
    }
    for (; e < end; ++e) z[child[e]] += x * weight_of(value[e]);
  }
}

template <class Value>
LT_INLINE int64_t add_all(const ChunkLayerView& layer, const Value* values, int64_t chunk, const QueryRow& query,
                          const int64_t* next, const QueryRow& next_query, Lookup* lookups, float* z) {
  const int32_t* features = layer.features + layer.feature_ptr[chunk];
  const int64_t last = layer.feature_ptr[layer.n_chunks] - layer.feature_ptr[chunk];
  const uint32_t* entry_ptr = layer.entry_ptr + layer.feature_ptr[chunk] + chunk;
  const uint16_t* child = layer.child + layer.entry_base[chunk];
  const Value* value = values + layer.entry_base[chunk];
  const uint32_t* buckets = layer.buckets + layer.bucket_ptr[chunk];
  const int shift = layer.bucket_shift[chunk];
  for (int64_t p = 0; p < query.n; ++p) {
    const uint32_t* bucket = buckets + (query.indices[p] >> shift);
    lookups[p] = {bucket[0], bucket[1], 0};
    __builtin_prefetch(features + bucket[0]);
    __builtin_prefetch(features + bucket[0] + 15);
  }
  int64_t n_hits = 0;
  for (int64_t p = 0; p < query.n; ++p) {
    const int64_t at = position_of(query.indices[p], features, lookups[p].begin, lookups[p].end, last);
    lookups[n_hits] = {at, 0, static_cast<float>(query.scale * query.values[p])};
    if (at >= 0) __builtin_prefetch(entry_ptr + at);
    n_hits += at >= 0;
  }
  int64_t n_entries = 0;
  for (int64_t h = 0; h < n_hits; ++h) {
    const int64_t at = lookups[h].begin, begin = entry_ptr[at], end = entry_ptr[at + 1];
    lookups[h].begin = begin;
    lookups[h].end = end;
    n_entries += end - begin;
    const int64_t near = end < begin + kAhead ? end : begin + kAhead;
    for (int64_t e = begin; e < near; e += 32) __builtin_prefetch(child + e);
    for (int64_t e = begin; e < near; e += 64 / static_cast<int64_t>(sizeof(Value))) __builtin_prefetch(value + e);
  }
  if (next) approach(layer, *next, next_query);
  add_entries(child, value, lookups, n_hits, z);
  return n_entries;
}

int64_t add_products(const ChunkLayerView& layer, int64_t chunk, const QueryRow& query, const int64_t* next,
                     const QueryRow& next_query, Lookup* lookups, float* z) {
  switch (layer.precision) {
    case WeightType::int8:
      return add_all(layer, layer.value_int8, chunk, query, next, next_query, lookups, z);
    case WeightType::bf16:
      return add_all(layer, layer.value_bf16, chunk, query, next, next_query, lookups, z);
    default:
      return add_all(layer, layer.value, chunk, query, next, next_query, lookups, z);
  }
}

void reaching(const float* z, int64_t n, float cut, uint16_t* masks) {
  const f32x16 least = splat(cut);
  for (int64_t j = 0; j < n; j += kLanes) {
    const uint32_t found = bits(load(z + j) >= least);
    const int64_t left = n - j;
    masks[j / kLanes] = static_cast<uint16_t>(left < kLanes ? found & ((1u << left) - 1) : found);
  }
}

}  // namespace

extern const ChunkKernels chunk_kernels;
const ChunkKernels chunk_kernels = {approach, add_products, reaching};

}  // namespace lt::LT_ISA
