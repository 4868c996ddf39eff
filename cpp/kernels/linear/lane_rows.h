// Sparse rows times a table of 16 floats per feature: the inner loops of the solvers.
// `kStride` is the distance in floats between the entries of two features. For *.simd.cpp files only.
#pragma once

#include "kernels/base/lanes.h"
#include "kernels/linear/lane_problem.h"

namespace lt::LT_ISA {

static_assert(kLanes == kBlockLabels);

// sum_f x_if table[f] over the dense columns
template <int kStride>
static LT_INLINE f32x16 dense_dot(const LaneRows& rows, int64_t i, const float* table) {
  const float* x = rows.dense_row(i);
  const float* t = table + rows.dense_at() * kStride;
  f32x16 z0 = {}, z1 = {};
  int64_t f = 0;
  for (; f + 2 <= rows.n_dense; f += 2) {
    z0 += load(t + f * kStride) * x[f];
    z1 += load(t + (f + 1) * kStride) * x[f + 1];
  }
  if (f < rows.n_dense) z0 += load(t + f * kStride) * x[f];
  return z0 + z1;
}

// start + sum_f x_if table[f] over the sparse columns
template <int kStride>
static LT_INLINE f32x16 sparse_dot(const LaneRows& rows, int64_t i, const float* table, const f32x16& start) {
  const int32_t* f = rows.indices;
  const float* x = rows.values;
  int64_t p = rows.indptr[i];
  const int64_t end = rows.ends[i];
#if defined(__SSE2__) && !defined(__AVX2__)  // 16 registers: two sums of four leave room for the products
  f32x16 z0 = start, z1 = {};
  for (; p + 2 <= end; p += 2) {
    z0 += load(table + f[p] * int64_t{kStride}) * x[p];
    z1 += load(table + f[p + 1] * int64_t{kStride}) * x[p + 1];
  }
  if (p < end) z0 += load(table + f[p] * int64_t{kStride}) * x[p];
  return z0 + z1;
#else
  f32x16 z0 = start, z1 = {}, z2 = {}, z3 = {};
  for (; p + 4 <= end; p += 4) {
    z0 += load(table + f[p] * int64_t{kStride}) * x[p];
    z1 += load(table + f[p + 1] * int64_t{kStride}) * x[p + 1];
    z2 += load(table + f[p + 2] * int64_t{kStride}) * x[p + 2];
    z3 += load(table + f[p + 3] * int64_t{kStride}) * x[p + 3];
  }
  for (; p < end; ++p) z0 += load(table + f[p] * int64_t{kStride}) * x[p];
  return (z0 + z1) + (z2 + z3);
#endif
}

// start + sum_f x_if table[f]
template <int kStride>
static LT_INLINE f32x16 dot(const LaneRows& rows, int64_t i, const float* table, const f32x16& start) {
  const f32x16 z = sparse_dot<kStride>(rows, i, table, start);
  return rows.n_dense ? z + dense_dot<kStride>(rows, i, table) : z;
}

// table[f] += x_if step over the sparse columns
template <int kStride>
static LT_INLINE void sparse_axpy(const LaneRows& rows, int64_t i, const f32x16& step, float* table) {
  for (int64_t p = rows.indptr[i]; p < rows.ends[i]; ++p) {
    float* t = table + rows.indices[p] * int64_t{kStride};
    store(t, load(t) + step * rows.values[p]);
  }
}

// table[f] += x_if step
template <int kStride>
static LT_INLINE void axpy(const LaneRows& rows, int64_t i, const f32x16& step, float* table) {
  sparse_axpy<kStride>(rows, i, step, table);
  if (!rows.n_dense) return;
  const float* x = rows.dense_row(i);
  float* t = table + rows.dense_at() * kStride;
  for (int64_t f = 0; f < rows.n_dense; ++f) store(t + f * kStride, load(t + f * kStride) + step * x[f]);
}

// Bring a later row near: its entries, then the table entries of its rarest features. Entries are sorted by falling
// frequency, so the last ones are those whose table entries are likely to be far away.
static inline void prefetch_row(const LaneRows& rows, int64_t i) {
  const int64_t end = rows.ends[i];
  for (int64_t p = rows.indptr[i]; p < end; p += 16) {
    __builtin_prefetch(rows.indices + p);
    __builtin_prefetch(rows.values + p);
  }
}

static inline void prefetch_dense(const LaneRows& rows, int64_t i) {
  const float* x = rows.dense_row(i);
  for (int64_t f = 0; f < rows.n_dense; f += 16) __builtin_prefetch(x + f);
}

template <int kStride>
static inline void prefetch_table(const LaneRows& rows, int64_t i, const float* table) {
  constexpr int64_t kRare = 32;
  const int64_t end = rows.ends[i];
  const int64_t begin = end - rows.indptr[i] > kRare ? end - kRare : rows.indptr[i];
  for (int64_t p = begin; p < end; ++p)
    for (int line = 0; line < kStride; line += kLanes)
      __builtin_prefetch(table + rows.indices[p] * int64_t{kStride} + line);
}

// Sign and cost of a row in every lane.
struct RowTarget {
  f32x16 sign, cost;
};

static LT_INLINE RowTarget row_target(const LaneTargets& targets, int64_t i) {
  const int64_t slot = targets.slot[i];
  if (slot >= 0) return {load(targets.sign + slot * kLanes), load(targets.cost + slot * kLanes)};
  const f32x16 cost = load(targets.negative_cost);
  return {splat(-1), targets.row_weight ? cost * targets.row_weight[i] : cost};
}

}  // namespace lt::LT_ISA
