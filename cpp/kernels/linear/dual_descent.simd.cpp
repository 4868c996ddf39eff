// Dual coordinate descent for 16 labels at once (Hsieh et al. 2008, in lanes).
//
//   min_w 1/2 |w|^2 + sum_i C_i max(0, 1 - y_i w.x_i)^2      (squared hinge; the hinge has the power 1)
//
// Dual variables a_i in [0, U_i] with w = sum_i a_i y_i x_i. One step on row i, in every lane:
//
//   G = y_i w.x_i - 1 + a_i D_i,   a_i <- clip(a_i - G / (|x_i|^2 + D_i), 0, U_i)
//
// with D = 1 / 2C, U = inf for the squared hinge and D = 0, U = C for the hinge.
//
// Where the time goes, and what is done about it: after the first pass most rows are negatives that every lane already
// classifies with room to spare (a_i = 0, G > 0). They are put to sleep at once, not only when G exceeds the largest
// gradient of the last pass as in LIBLINEAR: with 16 lanes that bound is rarely met. When the awake rows have
// converged (roughly, at first), every row is woken for one full pass, and only a full pass that meets the tolerance
// ends the descent. So sleeping costs no accuracy. For the same reason the descent can begin with a few rows: those
// that are positive in some lane and a sample of the others, a sixteenth of many. Lanes whose projected gradient is a
// small part of the tolerance are left alone: such steps are most of all steps, and none of them decides whether the
// tolerance is met.
//
// A feature of a single row has the weight a_i y_i x_if, at any time: it adds a_i x_if^2 to G, and its line of weights
// need not be touched until the end. Nearly half the features of a cluster are such (rows.single_sq).
//
// Dense columns have their weights lane by lane (lane_dense.h); the steps are the same.
#include <limits>

#include "kernels/linear/lane_dense.h"
#include "kernels/linear/lane_problem.h"
#include "kernels/linear/lane_rows.h"

namespace lt::LT_ISA {

namespace {

struct Rng {  // xorshift64
  uint64_t state;
  uint32_t below(uint32_t n) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return static_cast<uint32_t>(((state >> 32) * n) >> 32);
  }
};

constexpr int64_t kRowsPerLook = 256;  // at the flag that stops it
// Rows with more entries, 16 MB of them, come from far memory. Fewer, read one after the other, are there in time
// without being asked for.
constexpr int64_t kNearEntries = int64_t{1} << 21;
constexpr int32_t kFewPasses = 10;  // where so few are allowed all are full: a descent cut short has seen every row
// Parts of the tolerance below which a gradient is left alone: in problems that may begin with a sample, and in those
// that see every row there is, where more would cost precision.
constexpr float kNegligible = 0.15f, kNegligibleOfAll = 0.035f;

// Tolerances that are enough for the rows that are awake while a full pass, which moves them anyway, is sure to follow:
// as long as there was none, and always where every row is seen.
constexpr float kRough = 2.0f;

// Every so many rows are in the sample that descent begins with: 128 rows at least.
int64_t sample_step(int64_t n_rows) { return n_rows < 256 ? 1 : n_rows < 2048 ? n_rows / 128 : 16; }

void shuffle(int32_t* order, int64_t n, Rng& rng) {
  for (int64_t s = 0; s + 1 < n; ++s) {
    const int64_t t = s + rng.below(static_cast<uint32_t>(n - s));
    const int32_t swapped = order[s];
    order[s] = order[t];
    order[t] = swapped;
  }
}

struct Scratch {
  float* alpha;    // (n_rows, 16)
  int32_t* order;  // (n_rows)
};

int64_t round_up(int64_t bytes) { return (bytes + 63) / 64 * 64; }

int64_t dual_scratch(const LaneRows& rows) {
  return round_up(rows.n_rows * kLanes * 4) + round_up(rows.n_rows * 4) + DenseWeights::bytes(rows.n_dense);
}

// Dual variables of the rows that `weights` were trained on: at the optimum they follow from the margins, a = 2 C
// max(0, 1 - y w.x) for the squared hinge, C or 0 for the hinge. What a row that has become positive did as a negative
// is taken back.
void recall(const LaneRows& rows, const LaneTargets& targets, const SolverParams& params, float* weights,
            float* alpha) {
  const bool squared = params.loss == Loss::squared_hinge;
  const f32x16 zero = {}, one = splat(1);
  float* bias_weights = weights + rows.n_features * int64_t{kLanes};
  for (int64_t i = 0; i < rows.n_rows; ++i) {
    if (!targets.known[i]) continue;
    RowTarget target = row_target(targets, i);
    if (!targets.is_negative(i)) {
      const i32x16 was_negative = load(targets.flipped + targets.slot[i] * int64_t{kLanes}) != 0.0f;
      const f32x16 cost = load(targets.cost);
      target.sign = select(was_negative, splat(-1), target.sign);
      target.cost = select(was_negative, targets.row_weight ? cost * targets.row_weight[i] : cost, target.cost);
    }
    const f32x16 z = dot<kLanes>(rows, i, weights, load(bias_weights) * params.bias);
    const f32x16 slack = one - target.sign * z;
    const f32x16 found = squared ? 2.0f * target.cost * slack : target.cost;
    store(alpha + i * kLanes, select(slack > 0.0f, found, zero));
  }
  for (int64_t i = 0; i < rows.n_rows; ++i) {
    if (!targets.known[i] || targets.is_negative(i)) continue;
    const i32x16 was_negative = load(targets.flipped + targets.slot[i] * int64_t{kLanes}) != 0.0f;
    const f32x16 a = load(alpha + i * kLanes);
    const f32x16 back = select(was_negative, a, zero);
    if (!any(back != 0.0f)) continue;
    store(alpha + i * kLanes, a - back);
    axpy<kLanes>(rows, i, back, weights);
    store(bias_weights, load(bias_weights) + back * params.bias);
  }
}

// Calls take(f, w) for every feature of a single row that has one, w = a_i y_i x_if, but for rows none of whose weights
// can reach the limit: no value is larger than the root of single_sq.
template <class Take>
LT_INLINE void for_singles(const LaneRows& rows, const LaneTargets& targets, const void* scratch, const f32x16& limit,
                           Take take) {
  const float* alpha = static_cast<const float*>(scratch);
  const f32x16 least = limit * limit * 0.999f;
  for (int64_t i = 0; i < rows.n_rows; ++i) {
    if (rows.shared_ends[i] == rows.ends[i]) continue;
    const f32x16 a = load(alpha + i * kLanes);
    if (!any((a != 0.0f) & ~(a * a * rows.single_sq[i] < least))) continue;
    const f32x16 step = a * row_target(targets, i).sign;
    for (int64_t p = rows.shared_ends[i]; p < rows.ends[i]; ++p) take(rows.feature(p), step * rows.values[p]);
  }
}

void weigh_singles(const LaneRows& rows, const LaneTargets& targets, const void* scratch, float* weights) {
  for_singles(rows, targets, scratch, f32x16{},
              [&](int32_t f, const f32x16& w) { store(weights + f * int64_t{kLanes}, w); });
}

// Leaves the weights of dense columns in `dense`.
template <bool kDense>
void descend(LaneRows rows, const LaneTargets& targets, const SolverParams& params, uint64_t seed, float* weights,
             void* memory, DenseWeights& dense, LaneStatus* status) {
  if (rows.shared_ends) rows.ends = rows.shared_ends;
  const float inf = std::numeric_limits<float>::infinity();
  const int64_t n = rows.n_rows;
  Scratch scratch;
  scratch.alpha = static_cast<float*>(memory);
  scratch.order = reinterpret_cast<int32_t*>(static_cast<char*>(memory) + round_up(n * kLanes * 4));
  for (int64_t i = 0; i < n * kLanes; ++i) scratch.alpha[i] = 0;
  for (int64_t i = 0; i < n; ++i) scratch.order[i] = static_cast<int32_t>(i);

  const bool squared = params.loss == Loss::squared_hinge;
  const f32x16 zero = {}, one = splat(1);
  const f32x16 negligible = splat((params.sample_first ? kNegligible : kNegligibleOfAll) * params.tolerance);
  LaneArray<int32_t> beyond;
  for (int lane = 0; lane < kLanes; ++lane) {
    beyond[lane] = lane < targets.n_lanes ? 0 : -1;
    status->iterations[lane] = 0;
    status->violation[lane] = 0;
    status->converged[lane] = lane >= targets.n_lanes;
  }
  const i32x16 absent = load(beyond);  // lanes after the last label of the block
  float* bias_weights = weights + rows.n_features * int64_t{kLanes};
  const float bias = params.bias;
  if (targets.known) recall(rows, targets, params, weights, scratch.alpha);
  if (kDense) dense.take(weights + rows.dense_at() * kLanes);

  int32_t* order = scratch.order;
  Rng rng{seed * 0x9E3779B97F4A7C15ull | 1};
  i32x16 frozen = absent;
  const int64_t sampled = params.max_iter < kFewPasses || !params.sample_first ? 1 : sample_step(n);
  const bool far = rows.indptr[n] > kNearEntries;
  bool rough = true;
  int64_t n_awake = 0;
  for (int64_t i = 0; i < n; ++i)
    if (!targets.is_negative(i) || i % sampled == 0) order[n_awake++] = static_cast<int32_t>(i);
  for (int32_t pass = 0; pass < params.max_iter; ++pass) {
    const bool full = n_awake == n;
    // The first pass and full ones read the rows as they lie in memory; in the others they are shuffled.
    if (!full && pass > 0) shuffle(order, n_awake, rng);
    const bool ask_for_rows = far || !full;
    int64_t n_kept = 0;
    f32x16 largest = zero, smallest = zero;  // projected gradients, those that are left alone counted as nothing
    const f32x16 least = select(frozen, splat(inf), negligible);
    for (int64_t s = 0; s < n_awake; ++s) {
      const int64_t i = order[s];
      if (s % kRowsPerLook == 0 && params.stopped()) return;
      if (s + 4 < n_awake) {
        if (ask_for_rows) prefetch_row(rows, order[s + 4]);
        __builtin_prefetch(scratch.alpha + order[s + 4] * int64_t{kLanes}, 1);
        prefetch_target(targets, order[s + 4]);
      }
      if (s + 1 < n_awake) prefetch_rare<kLanes>(rows, order[s + 1], weights);
      f32x16 z = sparse_dot<kLanes>(rows, i, weights, load(bias_weights) * bias);
      if (kDense) {
        if (s + 1 < n_awake) prefetch_dense(rows, order[s + 1]);
        z += dense.products(rows.dense_row(i), 0xFFFF & ~bits(frozen));
      }
      const f32x16 a = load(scratch.alpha + i * kLanes);
      const int64_t slot = targets.slot[i] * int64_t{kLanes};
      const f32x16 sign = load(targets.sign + slot);
      f32x16 diagonal = squared ? load(targets.diagonal + slot) : zero;
      f32x16 upper = squared ? splat(inf) : load(targets.cost + slot);
      if (targets.row_weight && slot == 0) {
        const f32x16 cost = load(targets.cost) * targets.row_weight[i];
        diagonal = squared ? min(0.5f / cost, splat(kLargestDiagonal)) : zero;
        upper = squared ? splat(inf) : cost;
      }
      const f32x16 own = rows.shared_ends ? diagonal + rows.single_sq[i] : diagonal;
      const f32x16 gradient = sign * z - one + a * own;
      const i32x16 moving = ((gradient < -least) & (a < upper)) | ((gradient > least) & (a > 0.0f));
      if (!any(moving)) continue;
      const f32x16 projected = select(moving, gradient, zero);
      largest = max(largest, projected);
      smallest = min(smallest, projected);
      const f32x16 moved = min(max(a - projected / (rows.sq_norms[i] + bias * bias + diagonal), zero), upper);
      const f32x16 step = (moved - a) * sign;
      order[n_kept++] = static_cast<int32_t>(i);
      store(scratch.alpha + i * kLanes, moved);
      sparse_axpy<kLanes>(rows, i, step, weights);
      if (kDense) dense.add(rows.dense_row(i), step);
      store(bias_weights, load(bias_weights) + step * bias);
    }
    n_awake = n_kept;
    const f32x16 violation = largest - smallest;
    if (full) rough = !params.sample_first;
    const float enough = full || !rough ? params.tolerance : kRough * params.tolerance;
    const i32x16 settled = (violation <= enough) | frozen;
    LaneArray<int32_t> asleep;
    store(asleep.at, frozen);
    const LaneArray<float> spread = lanes_of(violation);
    for (int lane = 0; lane < targets.n_lanes; ++lane) {
      if (!asleep[lane]) {
        status->iterations[lane] = pass + 1;
        status->violation[lane] = spread[lane];
      }
    }
    if (!all(settled)) {
      if (!full) frozen = settled;
      continue;
    }
    if (full) {
      for (int lane = 0; lane < targets.n_lanes; ++lane) status->converged[lane] = true;
      break;
    }
    for (int64_t i = 0; i < n; ++i) order[i] = static_cast<int32_t>(i);
    n_awake = n;
    frozen = absent;
  }
}

void solve_dual(const LaneRows& rows, const LaneTargets& targets, const SolverParams& params, uint64_t seed,
                float* weights, void* memory, LaneStatus* status) {
  DenseWeights dense(static_cast<char*>(memory) + dual_scratch(rows) - DenseWeights::bytes(rows.n_dense), rows.n_dense);
  if (!rows.n_dense) return descend<false>(rows, targets, params, seed, weights, memory, dense, status);
  descend<true>(rows, targets, params, seed, weights, memory, dense, status);
  dense.give(weights + rows.dense_at() * kLanes);
}

// The lanes of `w` that reach the limit, among the first n_lanes.
LT_INLINE uint32_t reaching(const f32x16& w, const f32x16& limit, int n_lanes) {
  return bits((w != 0.0f) & ((w >= limit) | (w <= -limit))) & ((1u << n_lanes) - 1);
}

LT_INLINE void keep(int32_t f, const f32x16& w, uint32_t lanes, KeptWeights& kept) {
  if (kept.n + kLanes > kept.room) kept.grow(kept);
#if defined(__AVX512F__)  // all at once: a loop over a few lanes is a loop whose end is not foreseen
  const auto mask = static_cast<__mmask16>(lanes);
  const __m512i numbers = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  _mm512_storeu_si512(kept.feature + kept.n, _mm512_set1_epi32(f));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(kept.lane + kept.n),
                   _mm512_maskz_cvtepi32_epi8(0xFFFF, _mm512_maskz_compress_epi32(mask, numbers)));
  _mm512_storeu_ps(kept.value + kept.n, _mm512_maskz_compress_ps(mask, reinterpret_cast<__m512>(w)));
  kept.n += __builtin_popcount(lanes);
#else
  const LaneArray<float> values = lanes_of(w);
  for (; lanes; lanes &= lanes - 1) {
    const int lane = __builtin_ctz(lanes);
    kept.feature[kept.n] = f;
    kept.lane[kept.n] = static_cast<uint8_t>(lane);
    kept.value[kept.n++] = values[lane];
  }
#endif
}

// Which features have a weight to keep is found first, without a branch: most have none, and which do is not foreseen.
void harvest(float* weights, int64_t begin, int64_t end, int n_lanes, const float* cutoff, KeptWeights& kept) {
  constexpr int kAtOnce = 256;  // features
  const f32x16 zero = {}, limit = load(cutoff);
  int32_t found[kAtOnce];
  uint32_t lanes[kAtOnce];
  for (int64_t first = begin; first < end; first += kAtOnce) {
    const int64_t last = first + kAtOnce < end ? first + kAtOnce : end;
    int n_found = 0;
    for (int64_t f = first; f < last; ++f) {
      found[n_found] = static_cast<int32_t>(f);
      lanes[n_found] = reaching(load(weights + f * kLanes), limit, n_lanes);
      n_found += lanes[n_found] != 0;
    }
    for (int k = 0; k < n_found; ++k) keep(found[k], load(weights + found[k] * int64_t{kLanes}), lanes[k], kept);
    for (int64_t f = first; f < last; ++f) store(weights + f * kLanes, zero);
  }
}

void harvest_singles(const LaneRows& rows, const LaneTargets& targets, const void* scratch, const float* cutoff,
                     KeptWeights& kept) {
  const f32x16 limit = load(cutoff);
  for_singles(rows, targets, scratch, limit,
              [&](int32_t f, const f32x16& w) { keep(f, w, reaching(w, limit, targets.n_lanes), kept); });
}

}  // namespace

// Defined in newton.simd.cpp and lane_objective.simd.cpp.
int64_t newton_scratch(const LaneRows& rows);
void solve_newton(const LaneRows& rows, const LaneTargets& targets, const SolverParams& params, float* weights,
                  void* scratch, LaneStatus* status);
void lane_objective(const LaneRows& rows, const LaneTargets& targets, const SolverParams& params, const float* weights,
                    const float* cutoff, double* objective);

extern const LaneKernels lane_kernels;
const LaneKernels lane_kernels = {dual_scratch,   solve_dual,   weigh_singles,  harvest_singles,
                                  newton_scratch, solve_newton, lane_objective, harvest};

}  // namespace lt::LT_ISA
