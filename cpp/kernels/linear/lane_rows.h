// Sparse rows times a table of 16 floats per feature: the inner loops of the solvers.
// `kStride` is the distance in floats between the entries of two features. For *.simd.cpp files only.
#pragma once

#include "kernels/base/lanes.h"
#include "kernels/linear/lane_problem.h"

namespace lt::LT_ISA {

static_assert(kLanes == kBlockLabels);

// Where a feature begins in a table, of an entry of LaneRows::lines.
template <int kStride, class Float>
static LT_INLINE Float* line_at(Float* table, int32_t entry) {
  return table + entry * int64_t{kStride / kLineStep};
}

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

// start + sum_f x_if table[f] over the sparse columns, four entries at a time. What is read beyond `ends` adds nothing:
// it is a zero, or (dual) an entry of a feature of this row alone, whose place in the table is zero until the end.
template <int kStride>
static LT_INLINE f32x16 sparse_dot(const LaneRows& rows, int64_t i, const float* table, const f32x16& start) {
  const int32_t* f = rows.lines;
  const float* x = rows.values;
  const int64_t end = rows.ends[i];
#if defined(__SSE2__) && !defined(__AVX2__)  // 16 registers: two sums of four leave room for the products
  f32x16 z0 = start, z1 = {};
  for (int64_t p = rows.indptr[i]; p < end; p += 2) {
    z0 += load(line_at<kStride>(table, f[p])) * x[p];
    z1 += load(line_at<kStride>(table, f[p + 1])) * x[p + 1];
  }
  return z0 + z1;
#else
#if defined(__AVX512F__)  // eight sums: the last of a row is waited for before it is known what the row asks for
  f32x16 z0 = start, z1 = {}, z2 = {}, z3 = {}, z4 = {}, z5 = {}, z6 = {}, z7 = {};
  int64_t p = rows.indptr[i];
  for (; p + 4 < end; p += 8) {
    z0 += load(line_at<kStride>(table, f[p])) * x[p];
    z1 += load(line_at<kStride>(table, f[p + 1])) * x[p + 1];
    z2 += load(line_at<kStride>(table, f[p + 2])) * x[p + 2];
    z3 += load(line_at<kStride>(table, f[p + 3])) * x[p + 3];
    z4 += load(line_at<kStride>(table, f[p + 4])) * x[p + 4];
    z5 += load(line_at<kStride>(table, f[p + 5])) * x[p + 5];
    z6 += load(line_at<kStride>(table, f[p + 6])) * x[p + 6];
    z7 += load(line_at<kStride>(table, f[p + 7])) * x[p + 7];
  }
  if (p < end) {
    z0 += load(line_at<kStride>(table, f[p])) * x[p];
    z1 += load(line_at<kStride>(table, f[p + 1])) * x[p + 1];
    z2 += load(line_at<kStride>(table, f[p + 2])) * x[p + 2];
    z3 += load(line_at<kStride>(table, f[p + 3])) * x[p + 3];
  }
  return ((z0 + z4) + (z1 + z5)) + ((z2 + z6) + (z3 + z7));
#else
  f32x16 z0 = start, z1 = {}, z2 = {}, z3 = {};
  for (int64_t p = rows.indptr[i]; p < end; p += 4) {
    z0 += load(line_at<kStride>(table, f[p])) * x[p];
    z1 += load(line_at<kStride>(table, f[p + 1])) * x[p + 1];
    z2 += load(line_at<kStride>(table, f[p + 2])) * x[p + 2];
    z3 += load(line_at<kStride>(table, f[p + 3])) * x[p + 3];
  }
  return (z0 + z1) + (z2 + z3);
#endif
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
  const int32_t* f = rows.lines;
  const float* x = rows.values;
  const int64_t end = rows.ends[i];
#pragma GCC unroll 4
  for (int64_t p = rows.indptr[i]; p < end; ++p) {
    float* t = line_at<kStride>(table, f[p]);
    store(t, load(t) + step * x[p]);
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

// Bring a later row near: its entries, its dense columns, and the lines of its rarest features in a table too large for
// near caches. (Always inlined: a function that does nothing but prefetch is one without effect, and calls of it go.)
static LT_INLINE void prefetch_row(const LaneRows& rows, int64_t i) {
  const int64_t end = rows.ends[i];
  for (int64_t p = rows.indptr[i]; p < end; p += 16) {
    __builtin_prefetch(rows.lines + p);
    __builtin_prefetch(rows.values + p);
  }
}

static LT_INLINE void prefetch_dense(const LaneRows& rows, int64_t i) {
  const float* x = rows.dense_row(i);
  for (int64_t f = 0; f < rows.n_dense; f += 16) __builtin_prefetch(x + f);
}

template <int kStride>
static LT_INLINE void prefetch_rare(const LaneRows& rows, int64_t i, const float* table) {
  if (rows.n_shared <= kNearFeatures) return;
  constexpr int64_t kMost = 32;
  const int64_t end = rows.ends[i];
  for (int64_t p = end - rows.indptr[i] > kMost ? end - kMost : rows.indptr[i]; p < end; ++p)
    for (int line = 0; line < kStride; line += kLanes)
      __builtin_prefetch(line_at<kStride>(table, rows.lines[p]) + line);
}

static LT_INLINE void prefetch_target(const LaneTargets& targets, int64_t i) {
  const int64_t at = targets.slot[i] * int64_t{kLanes};
  __builtin_prefetch(targets.sign + at);
  __builtin_prefetch((targets.diagonal ? targets.diagonal : targets.cost) + at);
}

// Sign and cost of a row in every lane.
struct RowTarget {
  f32x16 sign, cost;
};

static LT_INLINE RowTarget row_target(const LaneTargets& targets, int64_t i) {
  const int64_t at = targets.slot[i] * int64_t{kLanes};
  const f32x16 sign = load(targets.sign + at), cost = load(targets.cost + at);
  return {sign, targets.row_weight && targets.is_negative(i) ? cost * targets.row_weight[i] : cost};
}

}  // namespace lt::LT_ISA
