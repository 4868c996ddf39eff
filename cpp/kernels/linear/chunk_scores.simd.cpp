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

LT_INLINE int32_t four_of(const uint8_t* u) {
  typedef int32_t Four __attribute__((aligned(1), may_alias));
  return *reinterpret_cast<const Four*>(u);
}

// sums[l] = sum over the columns of u times the code of child l of a group.
#if defined(__AVX512BW__)
// Machines with AVX-512 mostly have the instruction that does it all.
__attribute__((target("avx512vnni"))) void code_products_at_once(const int8_t* group, int64_t stride, const uint8_t* u,
                                                                 int32_t* sums) {
  __m512i even = _mm512_setzero_si512(), odd = even;
  for (int64_t j = 0; j < stride; j += 8) {
    const __m512i a = _mm512_set1_epi32(four_of(u + j)), b = _mm512_set1_epi32(four_of(u + j + 4));
    even = _mm512_dpbusd_epi32(even, a, _mm512_loadu_si512(group + j * 16));
    odd = _mm512_dpbusd_epi32(odd, b, _mm512_loadu_si512(group + j * 16 + 64));
  }
  _mm512_storeu_si512(sums, _mm512_add_epi32(even, odd));
}
#endif

void code_products(const int8_t* group, int64_t stride, const uint8_t* u, int32_t* sums) {
#if defined(__AVX512BW__)
  const __m512i ones = _mm512_set1_epi16(1);
  __m512i sum = _mm512_setzero_si512();
  for (int64_t j = 0; j < stride; j += 4) {  // 127 * 127 * 2 fits into 16 bits
    const __m512i pairs = _mm512_maddubs_epi16(_mm512_set1_epi32(four_of(u + j)), _mm512_loadu_si512(group + j * 16));
    sum = _mm512_add_epi32(sum, _mm512_madd_epi16(pairs, ones));
  }
  _mm512_storeu_si512(sums, sum);
#elif defined(__AVX2__)
  const __m256i ones = _mm256_set1_epi16(1);
  __m256i low = _mm256_setzero_si256(), high = low;
  for (int64_t j = 0; j < stride; j += 4) {
    const __m256i x = _mm256_set1_epi32(four_of(u + j));
    const auto* line = reinterpret_cast<const __m256i*>(group + j * 16);
    low = _mm256_add_epi32(low, _mm256_madd_epi16(_mm256_maddubs_epi16(x, _mm256_loadu_si256(line)), ones));
    high = _mm256_add_epi32(high, _mm256_madd_epi16(_mm256_maddubs_epi16(x, _mm256_loadu_si256(line + 1)), ones));
  }
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(sums), low);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(sums + 8), high);
#else
  for (int lane = 0; lane < 16; ++lane) sums[lane] = 0;
  for (int64_t j = 0; j < stride; j += 4)
    for (int lane = 0; lane < 16; ++lane)
      for (int part = 0; part < 4; ++part)
        sums[lane] += static_cast<int32_t>(u[j + part]) * group[j * 16 + lane * 4 + part];
#endif
}

void dense_bounds(const DenseTable& table, int64_t chunk, int64_t width, const DenseQuery& query, const float* z,
                  float* most) {
  auto* products = code_products;
#if defined(__AVX512BW__)
  if (__builtin_cpu_supports("avx512vnni")) products = code_products_at_once;
#endif
  for (int64_t j = 0; j < width; j += 16) {
    const int64_t at = table.first_group[chunk] * 16 + j;
    alignas(64) int32_t sums[16];
    products(table.codes + at * table.stride, table.stride, query.u, sums);
    const float* step = table.step + at;
    const float* l1 = table.l1 + at;
    const int32_t* code_sum = table.code_sum + at;
    for (int lane = 0; lane < 16; ++lane) {
      const float estimate = step[lane] * query.step * static_cast<float>(sums[lane] - 64 * code_sum[lane]);
      const float apart = 0.5f * (step[lane] * query.l1 + query.step * l1[lane]);
      // A little more than the roundings on either way.
      const float slack = 1 + __builtin_fabsf(z[j + lane]) + __builtin_fabsf(estimate);
      most[j + lane] = z[j + lane] + estimate + 1.01f * apart + 1e-5f * slack;
    }
  }
}

void dense_products(const float* table, int64_t stride, const float* x, const int32_t* rows, int64_t n, float* out) {
  for (int64_t j = 0; j < n; ++j) {
    const float* w = table + rows[j] * stride;
    f32x16 even = {}, odd = {};
    int64_t f = 0;
    for (; f + 2 * kLanes <= stride; f += 2 * kLanes) {
      even += load_anywhere(x + f) * load_anywhere(w + f);
      odd += load_anywhere(x + f + kLanes) * load_anywhere(w + f + kLanes);
    }
    if (f < stride) even += load_anywhere(x + f) * load_anywhere(w + f);
    LaneArray<float> sums = lanes_of(even + odd);
    for (int apart = kLanes / 2; apart; apart /= 2)
      for (int lane = 0; lane < apart; ++lane) sums[lane] += sums[lane + apart];
    out[j] = sums[0];
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
const ChunkKernels chunk_kernels = {approach, add_products, dense_bounds, dense_products, reaching};

}  // namespace lt::LT_ISA
