#include "kernels/codes/bucket_kernels.h"

#include "kernels/base/lane_math.h"

namespace lt::LT_ISA {

namespace {

LT_INLINE f32x16 linked(const f32x16& z, Link link, float shift) {
  switch (link) {
    case Link::sigmoid: {
      const f32x16 e = exp_negative(abs(z));
      return select(z < 0.0f, e, splat(1.0f)) / (e + 1.0f);
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

// Brings the largest R / 2 + 1 to the front, in order: enough to read off the middle.
LT_INLINE f32x16 median(f32x16* v, int64_t R) {
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
  LaneArray<float> lowest;
  for (int lane = 0; lane < kLanes; ++lane) lowest[lane] = least[lane];
  const f32x16 wanted = load(lowest);
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
    hits[i] = static_cast<uint16_t>(bits(total >= wanted));
  }
}

// Sums of bytes in 16 bits: as many registers as 64 of them fill, and the bit of each.
constexpr int kSteps = 2 * kRegister;  // in a register
constexpr int kStepParts = 64 / kSteps;
typedef uint8_t u8xHalf __attribute__((vector_size(kSteps), aligned(1)));
typedef uint16_t u16xN __attribute__((vector_size(2 * kSteps)));

LT_INLINE uint64_t step_bits(u16xN mask) {
#if defined(__AVX512BW__)
  return _mm512_test_epi16_mask(reinterpret_cast<__m512i>(mask), reinterpret_cast<__m512i>(mask));
#else
  if (!any(reinterpret_cast<i32xN>(mask))) return 0;  // nearly always
  uint64_t out = 0;
  for (int lane = 0; lane < kSteps; ++lane) out |= static_cast<uint64_t>(mask[lane] & 1) << lane;
  return out;
#endif
}

void scan_steps(const uint8_t* steps, const int32_t* table, int64_t n, int64_t R, int64_t B, const uint16_t* least,
                uint64_t* hits) {
  u16xN wanted[kStepParts];
  __builtin_memcpy(wanted, least, sizeof wanted);
  for (int64_t i = 0; i < n; ++i) {
    const int32_t* buckets = table + i * R;
    u16xN sums[kStepParts] = {};
    for (int64_t r = 0; r < R; ++r) {
      const uint8_t* from = steps + (r * B + buckets[r]) * 64;
      for (int part = 0; part < kStepParts; ++part)
        sums[part] += __builtin_convertvector(*reinterpret_cast<const u8xHalf*>(from + part * kSteps), u16xN);
    }
    uint64_t found = 0;
    for (int part = 0; part < kStepParts; ++part)
      found |= step_bits(reinterpret_cast<u16xN>(sums[part] >= wanted[part])) << (part * kSteps);
    hits[i] = found;
  }
}

}  // namespace

extern const BucketKernels bucket_kernels;
const BucketKernels bucket_kernels = {link_values, scan, scan_steps};

}  // namespace lt::LT_ISA
