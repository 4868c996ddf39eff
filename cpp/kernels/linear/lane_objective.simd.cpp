// Objective of 16 labels with their small weights dropped: what pruning by budget asks.
#include "kernels/linear/lane_losses.h"
#include "kernels/linear/lane_rows.h"

namespace lt::LT_ISA {

namespace {

LT_INLINE f32x16 kept(const float* weights, const f32x16& cutoff) {
  const f32x16 w = load(weights);
  return select(abs(w) >= cutoff, w, f32x16{});
}

template <class L>
void add_loss(const L& loss, const LaneRows& rows, const LaneTargets& targets, const SolverParams& params,
              const float* weights, const f32x16& limit, double* objective) {
  LaneSum sum;
  const f32x16 cutoff = limit;  // a copy: the argument lies in memory
  const f32x16 bias = kept(weights + rows.n_features * kLanes, cutoff) * params.bias;
  for (int64_t i = 0; i < rows.n_rows; ++i) {
    f32x16 z = bias;
    for (int64_t p = rows.indptr[i]; p < rows.ends[i]; ++p)
      z += kept(line_at<kLanes>(weights, rows.lines[p]), cutoff) * rows.values[p];
    const float* x = rows.n_dense ? rows.dense_row(i) : nullptr;
    for (int64_t f = 0; f < rows.n_dense; ++f) z += kept(weights + (rows.dense_at() + f) * kLanes, cutoff) * x[f];
    const RowTarget target = row_target(targets, i);
    sum.add(target.cost * loss.value(z, target.sign));
  }
  const LaneArray<double> total = sum.totals();
  for (int lane = 0; lane < kLanes; ++lane) objective[lane] += total[lane];
}

}  // namespace

void lane_objective(const LaneRows& rows, const LaneTargets& targets, const SolverParams& params, const float* weights,
                    const float* cutoff, double* objective) {
  const f32x16 limit = load(cutoff);
  const Penalty penalty{params.l2, params.l1, params.smoothing};
  LaneSum sum;
  for (int64_t f = 0; f < rows.n_features + params.regularize_bias; ++f)
    sum.add(penalty.value(kept(weights + f * kLanes, limit)));
  const LaneArray<double> total = sum.totals();
  for (int lane = 0; lane < kLanes; ++lane) objective[lane] = total[lane];
  switch (params.loss) {
    case Loss::squared_hinge:
      return add_loss(SquaredHinge(params), rows, targets, params, weights, limit, objective);
    case Loss::hinge:
      return add_loss(Hinge(params), rows, targets, params, weights, limit, objective);
    case Loss::logistic:
      return add_loss(Logistic(params), rows, targets, params, weights, limit, objective);
    case Loss::huber_hinge:
      return add_loss(HuberHinge(params), rows, targets, params, weights, limit, objective);
  }
}

}  // namespace lt::LT_ISA
