#include "kernels/bucket_kernels.h"

#include "kernels/lane_math.h"

namespace lt::LT_ISA {

namespace {

f32x16 linked(f32x16 z, Link link, float shift) {
  switch (link) {
    case Link::sigmoid: {
      const f32x16 e = exp_negative(abs(z));
      return (z < 0.0f ? e : splat(1.0f)) / (e + 1.0f);
    }
    case Link::hinge: {
      const f32x16 slack = max(1.0f - z, f32x16{});
      return exp_negative(slack * slack);
    }
    case Link::softmax:
      return exp_negative(max(shift - z, f32x16{}));
    default:
      return z;
  }
}

void link_values(const float* in, int64_t n, Link link, float shift, float* out) {
  alignas(64) float lanes[kLanes] = {};
  for (int64_t i = 0; i < n; i += kLanes) {
    const int64_t width = n - i < kLanes ? n - i : kLanes;
    for (int64_t j = 0; j < width; ++j) lanes[j] = in[i + j];
    store(lanes, linked(load(lanes), link, shift));
    for (int64_t j = 0; j < width; ++j) out[i + j] = lanes[j];
  }
}

uint16_t bits(i32x16 mask) {
#if defined(__AVX512F__)
  const __m512i m = reinterpret_cast<__m512i>(mask);
  return static_cast<uint16_t>(_mm512_test_epi32_mask(m, m));
#else
  if (!any(mask)) return 0;
  uint16_t out = 0;
  for (int lane = 0; lane < kLanes; ++lane) out |= static_cast<uint16_t>((mask[lane] & 1) << lane);
  return out;
#endif
}

// Brings the largest R / 2 + 1 to the front, in order: enough to read off the middle.
f32x16 median(f32x16* v, int64_t R) {
  for (int64_t i = 0; i <= R / 2; ++i)
    for (int64_t j = i + 1; j < R; ++j) {
      const f32x16 high = max(v[i], v[j]);
      v[j] = min(v[i], v[j]);
      v[i] = high;
    }
  return R % 2 ? v[R / 2] : (v[R / 2 - 1] + v[R / 2]) * 0.5f;
}

void scan(const float* values, const int32_t* table, int64_t n, int64_t R, int64_t B, Aggregation aggregation,
          const float* least, uint16_t* hits) {
  f32x16 wanted;
  for (int lane = 0; lane < kLanes; ++lane) wanted[lane] = least[lane];
  const auto value = [&](const int32_t* buckets, int64_t r) { return load(values + (r * B + buckets[r]) * kLanes); };
  for (int64_t i = 0; i < n; ++i) {
    const int32_t* buckets = table + i * R;
    f32x16 total = value(buckets, 0);
    if (aggregation == Aggregation::sum) {
      for (int64_t r = 1; r < R; ++r) total += value(buckets, r);
    } else if (aggregation == Aggregation::min) {
      for (int64_t r = 1; r < R; ++r) total = min(total, value(buckets, r));
    } else {
      f32x16 all_values[kMostMedian];
      for (int64_t r = 0; r < R; ++r) all_values[r] = value(buckets, r);
      total = median(all_values, R);
    }
    hits[i] = bits(total >= wanted);
  }
}

typedef uint8_t u8x32 __attribute__((vector_size(32)));
typedef uint16_t u16x32 __attribute__((vector_size(64)));

uint32_t bits32(u16x32 mask) {
#if defined(__AVX512BW__)
  const __m512i m = reinterpret_cast<__m512i>(mask);
  return _mm512_test_epi16_mask(m, m);
#else
  typedef uint64_t u64x8 __attribute__((vector_size(64)));
  const u64x8 m = reinterpret_cast<u64x8>(mask);
  if (!((m[0] | m[1]) | (m[2] | m[3]) | (m[4] | m[5]) | (m[6] | m[7]))) return 0;
  uint32_t out = 0;
  for (int lane = 0; lane < 32; ++lane) out |= static_cast<uint32_t>(mask[lane] & 1) << lane;
  return out;
#endif
}

void scan_steps(const uint8_t* steps, const int32_t* table, int64_t n, int64_t R, int64_t B, const uint16_t* least,
                uint64_t* hits) {
  u16x32 wanted[2];
  __builtin_memcpy(wanted, least, sizeof wanted);
  for (int64_t i = 0; i < n; ++i) {
    const int32_t* buckets = table + i * R;
    u16x32 low = {}, high = {};
    for (int64_t r = 0; r < R; ++r) {
      const u8x32* from = reinterpret_cast<const u8x32*>(steps + (r * B + buckets[r]) * 64);
      low += __builtin_convertvector(from[0], u16x32);
      high += __builtin_convertvector(from[1], u16x32);
    }
    hits[i] = bits32(reinterpret_cast<u16x32>(low >= wanted[0])) |
              static_cast<uint64_t>(bits32(reinterpret_cast<u16x32>(high >= wanted[1]))) << 32;
  }
}

}  // namespace

extern const BucketKernels bucket_kernels;
const BucketKernels bucket_kernels = {link_values, scan, scan_steps};

}  // namespace lt::LT_ISA
