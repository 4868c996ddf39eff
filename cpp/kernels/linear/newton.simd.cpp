// Newton's method with conjugate gradients and a line search, for 16 labels at once (DiSMEC++, in lanes).
//
//   min_w  l2 / 2 |w|^2 + l1 sum_f huber(w_f) + sum_i c_i phi(w.x_i, y_i)
//
// Every lane has its own direction, step length and end; the lanes share the walks over the rows. One iteration: the
// Newton direction (newton_direction.h), the change of every awake row's score along it, and a backtracking line search
// on those cached scores. A lane ends when its gradient has fallen to tolerance * max(1, min(positives, negatives)) /
// rows of what it is at w = 0, wherever it started. newton_state.h says how rows and features leave the problem.
//
// Precision: vectors are float, sums over rows or features double (LaneSum).
#include "kernels/linear/newton_direction.h"
#include "kernels/linear/newton_start.h"

namespace lt::LT_ISA {

namespace {

constexpr double kSmallestImprovement = 1e-12;
constexpr int kRefresh = 8;      // scores are computed anew every so many steps
constexpr int kStallLimit = 20;  // steps in which neither the objective falls nor the gradient halves

template <class L>
class Newton {
 public:
  Newton(NewtonState& state, LaneStatus* status)
      : s_(state), loss_(state.params), direction_(state, loss_), status_(status) {}

  void solve() {
    double n_positive[kLanes], zero_sq[kLanes];
    count_positives(s_.rows, s_.targets, n_positive);
    gradient_at_zero_sq(s_, loss_, zero_sq);
    const double n = static_cast<double>(s_.rows.n_rows);
    for (int lane = 0; lane < kLanes; ++lane) {
      const double rare = n_positive[lane] < n - n_positive[lane] ? n_positive[lane] : n - n_positive[lane];
      norm_at_zero_[lane] = marked_norm_[lane] = __builtin_sqrt(zero_sq[lane]);
      target_[lane] = norm_at_zero_[lane] * s_.params.tolerance * (rare > 1 ? rare : 1) / n;
      if (s_.live[lane] && !(zero_sq[lane] > 0 && zero_sq[lane] < 1e300)) {
        s_.live[lane] = 0;
        status_->converged[lane] = zero_sq[lane] == 0;  // then zero is the optimum; else it overflowed
      }
    }
    start_point(s_, n_positive);
    first_scores();
    for (int32_t iteration = 0; any(load(s_.live)); ++iteration) {
      const LaneArray<double> gradient_sq = direction_.begin();
      for (int lane = 0; lane < kLanes; ++lane)
        if (s_.live[lane]) judge_gradient(lane, __builtin_sqrt(gradient_sq[lane]));
      if (iteration == s_.params.max_iter || !any(load(s_.live))) return;
      direction_.solve();
      if (s_.params.stopped()) return;
      list_moving_features();
      score_changes(iteration % kRefresh == kRefresh - 1);
      move(line_search());
    }
  }

 private:
  // Scores at the starting point, and the objective there. A lane that would be better off at zero starts at zero:
  // means that hardly differ are separated by enormous weights only.
  void first_scores() {
    const LaneRows& rows = s_.rows;
    LaneSum loss_sum, penalty_sum, zero_sum;
    const f32x16 bias_start = load(s_.weights + s_.bias_at() * kLanes) * s_.params.bias;
    for (int64_t i = 0; i < rows.n_rows; ++i) {
      if (i + 1 < rows.n_rows) prefetch_rare<kLanes>(rows, i + 1, s_.weights);
      const f32x16 z = dot<kLanes>(rows, i, s_.weights, bias_start);
      const RowTarget target = row_target(s_.targets, i);
      store(s_.scores + i * kLanes, z);
      loss_sum.add(target.cost * loss_.value(z, target.sign));
      zero_sum.add(target.cost * loss_.value(f32x16{}, target.sign));
      s_.awake[i] = static_cast<int32_t>(i);
      s_.asleep[i] = 0;
    }
    s_.n_awake = rows.n_rows;
    for (int64_t f = 0; f <= rows.n_features; ++f) {
      const f32x16 w = load(s_.weights + f * kLanes);
      s_.supported[f] = any(w != 0.0f);
      store(s_.step + f * kLanes, f32x16{});
      if (s_.supported[f]) penalty_sum.add(s_.penalty_of(f).value(w));
    }
    const LaneArray<double> loss = loss_sum.totals(), penalty = penalty_sum.totals(), at_zero = zero_sum.totals();
    LaneArray<int32_t> worse = {};
    for (int lane = 0; lane < kLanes; ++lane) {
      s_.objective[lane] = loss[lane] + penalty[lane];
      if (s_.objective[lane] <= at_zero[lane] || s_.params.max_iter == 0) continue;
      s_.objective[lane] = at_zero[lane];
      worse[lane] = -1;
    }
    const i32x16 resets = load(worse);
    if (!any(resets)) return;
    auto reset = [&resets](float* p) { store(p, select(resets, f32x16{}, load(p))); };
    for (int64_t f = 0; f <= rows.n_features; ++f) reset(s_.weights + f * kLanes);
    for (int64_t i = 0; i < rows.n_rows; ++i) reset(s_.scores + i * kLanes);
  }

  void judge_gradient(int lane, double norm) {
    status_->violation[lane] = static_cast<float>(norm / norm_at_zero_[lane]);
    if (norm <= target_[lane]) {
      s_.live[lane] = 0;
      status_->converged[lane] = true;
      return;
    }
    if (!stuck_[lane] || norm < 0.5 * marked_norm_[lane]) {
      marked_norm_[lane] = norm;
      stalled_[lane] = 0;
    } else {
      stalled_[lane] += 1;
    }
    if (finished_[lane] || stalled_[lane] >= kStallLimit) s_.live[lane] = 0;
  }

  void list_moving_features() {
    s_.n_moving_features = 0;
    LaneSum ws, ss;
    for (int64_t f = 0; f < s_.bias_at(); ++f) {
      if (!s_.supported[f]) continue;
      s_.moving_features[s_.n_moving_features++] = static_cast<int32_t>(f);
      const f32x16 step = load(s_.step + f * kLanes);
      ws.add(load(s_.weights + f * kLanes) * step);
      ss.add(step * step);
    }
    s_.moving_features[s_.n_moving_features++] = static_cast<int32_t>(s_.bias_at());
    ws_ = ws.totals();
    ss_ = ss.totals();
  }

  // Change of the score of every row that could be touched by a step of length up to 1. A row that is negative in every
  // lane sleeps if even |x| |s| added to its score leaves it beyond the margin; what the steps could have added since
  // it fell asleep is |x| reach_ + drift_ (features and bias), subtracted in advance from its stored score. Scores are
  // sums of such changes: `refresh` computes them anew, before the rounding of many steps adds up.
  void score_changes(bool refresh) {
    const LaneRows& rows = s_.rows;
    const int64_t bias_at = s_.bias_at() * kLanes;
    const f32x16 bias_weight = load(s_.weights + bias_at) * s_.params.bias;
    bias_step_ = load(s_.step + bias_at) * s_.params.bias;
    LaneArray<double> norm;
    for (int lane = 0; lane < kLanes; ++lane) norm[lane] = __builtin_sqrt(ss_[lane]) * 1.0001;
    step_norm_ = to_lanes(norm);
    s_.n_awake = 0;
    for (int64_t i = 0; i < rows.n_rows; ++i) {
      if (L::kSleeps && s_.targets.is_negative(i) && sleeps_on(i)) continue;
      if (s_.asleep[i] || refresh) store(s_.scores + i * kLanes, dot<kLanes>(rows, i, s_.weights, bias_weight));
      s_.asleep[i] = 0;
      if (i + 1 < rows.n_rows) prefetch_rare<kLanes>(rows, i + 1, s_.step);
      store(s_.moves + s_.n_awake * kLanes, dot<kLanes>(rows, i, s_.step, bias_step_));
      s_.awake[s_.n_awake++] = static_cast<int32_t>(i);
    }
  }

  bool sleeps_on(int64_t i) {
    float* score = s_.scores + i * kLanes;
    const float norm = __builtin_sqrtf(s_.rows.sq_norms[i]);
    const f32x16 since = norm * reach_ + drift_, stored = load(score), now = s_.asleep[i] ? stored + since : stored;
    const f32x16 highest = now + max(norm * step_norm_ + bias_step_, f32x16{});
    if (!all((highest < -1.0001f) | ~load(s_.live))) return false;
    if (!s_.asleep[i]) store(score, stored - since);
    s_.asleep[i] = 1;
    return true;
  }

  // Penalty at w + t s less penalty at w, and its slope in t at both ends.
  void penalty_change(const LaneArray<float>& lengths, double* change, double* slope, double* start_slope) const {
    if (s_.penalty.l1 != 0) {
      const f32x16 t = load(lengths);
      LaneSum value_sum, end_sum, start_sum;
      for (int64_t k = 0; k < s_.n_moving_features; ++k) {
        const int64_t f = s_.moving_features[k];
        const f32x16 w = load(s_.weights + f * kLanes), step = load(s_.step + f * kLanes), moved = w + t * step;
        const Penalty& penalty = s_.penalty_of(f);
        value_sum.add(penalty.change(w, moved));
        end_sum.add(penalty.slope(moved) * step);
        start_sum.add(penalty.slope(w) * step);
      }
      const LaneArray<double> value = value_sum.totals(), end = end_sum.totals(), start = start_sum.totals();
      for (int lane = 0; lane < kLanes; ++lane) {
        change[lane] = value[lane];
        slope[lane] = end[lane];
        start_slope[lane] = start[lane];
      }
      return;
    }
    const int64_t bias_at = s_.bias_at() * kLanes;
    for (int lane = 0; lane < kLanes; ++lane) {
      const double w = s_.weights[bias_at + lane], step = s_.step[bias_at + lane], length = lengths[lane];
      const double ws = s_.penalty.l2 * ws_[lane] + s_.bias_penalty.l2 * w * step;
      const double ss = s_.penalty.l2 * ss_[lane] + s_.bias_penalty.l2 * step * step;
      change[lane] = length * ws + 0.5 * length * length * ss;
      slope[lane] = ws + length * ss;
      start_slope[lane] = ws;
    }
  }

  // Step length per lane; 0 for lanes that are done, or have nowhere to go.
  f32x16 line_search() {
    LaneArray<int32_t> pending = s_.live;
    LaneArray<float> lengths = lanes_of(select(load(s_.live), splat(1), f32x16{}));
    for (int halvings = 0; any(load(pending)) && !s_.params.stopped(); ++halvings) {
      const f32x16 t = load(lengths);
      LaneSum change_sum, slope_sum, start_sum;
      for (int64_t k = 0; k < s_.n_awake; ++k) {
        const int64_t i = s_.awake[k];
        const RowTarget target = row_target(s_.targets, i);
        const f32x16 z = load(s_.scores + i * kLanes), move = load(s_.moves + k * kLanes), moved = z + t * move;
        change_sum.add(target.cost * loss_.change(z, moved, target.sign));
        slope_sum.add(target.cost * loss_.slope(moved, target.sign) * move);
        start_sum.add(target.cost * loss_.slope(z, target.sign) * move);
      }
      double change[kLanes], slope[kLanes], start_slope[kLanes];
      const LaneArray<double> loss_change = change_sum.totals(), loss_slope = slope_sum.totals();
      const LaneArray<double> loss_start = start_sum.totals();
      penalty_change(lengths, change, slope, start_slope);
      for (int lane = 0; lane < kLanes; ++lane) {
        if (!pending[lane]) continue;
        change[lane] += loss_change[lane];
        slope[lane] += loss_slope[lane];
        const double descent = start_slope[lane] + loss_start[lane];
        const double size = __builtin_fabs(s_.objective[lane]);  // targets beyond 1 can make it negative
        if (!(descent < 0) || halvings > kMaxHalvings) {
          pending[lane] = s_.live[lane] = 0;
          lengths[lane] = 0;
        } else if (step_is_good(change[lane], slope[lane], descent, lengths[lane], size)) {
          pending[lane] = 0;
          s_.objective[lane] += change[lane];
          status_->iterations[lane] += 1;
          const double now = __builtin_fabs(s_.objective[lane]);
          stuck_[lane] = !(-change[lane] > 1e-3 * kRoundingOfObjective * now);
          finished_[lane] = -descent * lengths[lane] < kSmallestImprovement * now;
        } else {
          lengths[lane] *= 0.5f;
        }
      }
    }
    return load(lengths);
  }

  void move(const f32x16& lengths) {
    const f32x16 t = lengths;
    for (int64_t k = 0; k < s_.n_moving_features; ++k) {
      const int64_t f = s_.moving_features[k];
      const f32x16 w = load(s_.weights + f * kLanes) + t * load(s_.step + f * kLanes);
      store(s_.weights + f * kLanes, w);
      store(s_.step + f * kLanes, f32x16{});
      s_.supported[f] = any(w != 0.0f);
    }
    for (int64_t k = 0; k < s_.n_awake; ++k) {
      float* score = s_.scores + s_.awake[k] * int64_t{kLanes};
      store(score, load(score) + t * load(s_.moves + k * kLanes));
    }
    reach_ += t * step_norm_;
    drift_ += t * bias_step_;
  }

  NewtonState& s_;
  const L loss_;
  Direction<L> direction_;
  LaneStatus* status_;
  double norm_at_zero_[kLanes], target_[kLanes];
  double marked_norm_[kLanes];  // gradient when it last halved, or the objective last fell
  int stalled_[kLanes] = {};    // stuck steps in a row
  bool stuck_[kLanes] = {};     // the last step moved the objective by less than its rounding
  bool finished_[kLanes] = {};  // no step can improve the objective any more
  LaneArray<double> ws_, ss_;   // w.s and |s|^2 without the bias
  f32x16 step_norm_ = {}, bias_step_ = {}, reach_ = {}, drift_ = {};
};

template <class L>
void solve_with(NewtonState& state, LaneStatus* status) {
  Newton<L>(state, status).solve();
}

}  // namespace

int64_t newton_scratch(const LaneRows& rows) {
  NewtonState state;
  return carve(rows, nullptr, state);
}

void solve_newton(const LaneRows& rows, const LaneTargets& targets, const SolverParams& params, float* weights,
                  void* scratch, LaneStatus* status) {
  NewtonState state;
  carve(rows, scratch, state);
  state.rows = rows;
  state.targets = targets;
  state.params = params;
  state.weights = weights;
  state.penalty = {params.l2, params.l1, params.smoothing};
  if (params.regularize_bias)
    state.bias_penalty = state.penalty;
  else
    state.bias_damping = 0.01f * (params.l2 + params.l1);
  for (int lane = 0; lane < kLanes; ++lane) {
    state.live[lane] = lane < targets.n_lanes && rows.n_rows > 0 ? -1 : 0;
    status->iterations[lane] = 0;
    status->violation[lane] = 0;
    status->converged[lane] = !state.live[lane];
  }
  if (!any(load(state.live))) return;
  switch (params.loss) {
    case Loss::squared_hinge:
      return solve_with<SquaredHinge>(state, status);
    case Loss::logistic:
      return solve_with<Logistic>(state, status);
    default:
      return solve_with<HuberHinge>(state, status);
  }
}

}  // namespace lt::LT_ISA
