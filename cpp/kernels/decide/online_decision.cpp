#include "kernels/decide/online_decision.h"

#include <stdexcept>

#include "kernels/decide/best_gains.h"
#include "kernels/decide/label_utility.h"

namespace lt {

namespace {

template <class U>
double decide(const CsrView& eta, const AscentSettings& set, double precision_weight, double weight, double growth,
              OnlineState state, int32_t* ids, float* etas) {
  BestGains best(set.k);
  const double m = static_cast<double>(eta.n_cols);
  for (int64_t i = 0; i < eta.n_rows; ++i, weight *= growth) {
    state.n_rows += weight;
    const UtilityParams u{state.n_rows, set.beta * set.beta, set.epsilon * state.n_rows};
    const double precision = precision_weight * m / (state.n_rows * static_cast<double>(set.k));
    best.clear();
    for (int64_t c = eta.begin(i); c < eta.end(i); ++c) {
      const int32_t j = eta.indices[c];
      const double e = weight * static_cast<double>(eta.values[c]);
      const double t = state.t[j], q = state.q[j], p = state.p[j] += e;
      const double gain = U::at(t + e, q + weight, p, u) - U::at(t, q, p, u);
      const double mixed = (1.0 - precision_weight) * gain + precision * e;
      if (set.exactly || mixed > 0.0) best.offer({mixed, j, eta.values[c]});
    }
    best.finish();
    const auto& items = best.items();
    for (int64_t s = 0; s < set.k; ++s) {
      const bool named = s < static_cast<int64_t>(items.size());
      ids[i * set.k + s] = named ? items[s].id : -1;
      etas[i * set.k + s] = named ? items[s].eta : 0.0f;
      if (!named) continue;
      state.t[items[s].id] += weight * static_cast<double>(items[s].eta);
      state.q[items[s].id] += weight;
    }
  }
  return state.n_rows;
}

auto decider(Utility utility) {
  switch (utility) {
    case Utility::kNone:
      return decide<NoUtility>;
    case Utility::kPrecision:
      return decide<Precision>;
    case Utility::kRecall:
      return decide<Recall>;
    case Utility::kFBeta:
      return decide<FBeta>;
    case Utility::kJaccard:
      return decide<Jaccard>;
    case Utility::kBalancedAccuracy:
      return decide<BalancedAccuracy>;
    case Utility::kGMean:
      return decide<GMean>;
    case Utility::kHMean:
      return decide<HMean>;
    case Utility::kFowlkesMallows:
      return decide<FowlkesMallows>;
    default:
      throw std::invalid_argument("this utility cannot be decided row by row");
  }
}

}  // namespace

double online_decision(const CsrView& eta, const AscentSettings& settings, double precision_weight, double weight,
                       double growth, OnlineState state, int32_t* ids, float* etas) {
  return decider(settings.utility)(eta, settings, precision_weight, weight, growth, state, ids, etas);
}

}  // namespace lt
