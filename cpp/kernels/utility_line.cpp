#include "kernels/utility_line.h"

#include <stdexcept>

#include "kernels/label_utility.h"

namespace lt {

namespace {

template <class U>
void sums(const CountLine& line, const UtilityParams& u, int64_t n_steps, const double* steps, double* out) {
  for (int64_t s = 0; s < n_steps; ++s) {
    const double x = steps[s];
    double sum = 0.0;
    for (int64_t j = 0; j < line.n_labels; ++j)
      sum += U::at(line.t[j] + x * line.dt[j], line.q[j] + x * line.dq[j], line.p[j], u);
    out[s] = sum;
  }
}

}  // namespace

void utility_along(const CountLine& line, Utility utility, double beta2, double epsilon, int64_t n_steps,
                   const double* steps, double* out) {
  const UtilityParams u{1.0, beta2, epsilon};
  switch (utility) {
    case Utility::kPrecision:
      return sums<Precision>(line, u, n_steps, steps, out);
    case Utility::kRecall:
      return sums<Recall>(line, u, n_steps, steps, out);
    case Utility::kFBeta:
      return sums<FBeta>(line, u, n_steps, steps, out);
    case Utility::kJaccard:
      return sums<Jaccard>(line, u, n_steps, steps, out);
    case Utility::kBalancedAccuracy:
      return sums<BalancedAccuracy>(line, u, n_steps, steps, out);
    case Utility::kGMean:
      return sums<GMean>(line, u, n_steps, steps, out);
    case Utility::kHMean:
      return sums<HMean>(line, u, n_steps, steps, out);
    case Utility::kFowlkesMallows:
      return sums<FowlkesMallows>(line, u, n_steps, steps, out);
    default:
      throw std::invalid_argument("this utility is no function of the counts");
  }
}

}  // namespace lt
