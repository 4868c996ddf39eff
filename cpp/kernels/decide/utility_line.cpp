#include "kernels/decide/utility_line.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <vector>

#include "kernels/decide/label_utility.h"

namespace lt {

namespace {

// Labels whose counts move, with the change instead of the end.
struct Moving {
  std::vector<double> t, q, dt, dq, p;

  explicit Moving(const CountLine& line) {
    for (int64_t j = 0; j < line.n_labels; ++j) {
      if (line.t[j] == line.t_end[j] && line.q[j] == line.q_end[j]) continue;
      t.push_back(line.t[j]);
      q.push_back(line.q[j]);
      dt.push_back(line.t_end[j] - line.t[j]);
      dq.push_back(line.q_end[j] - line.q[j]);
      p.push_back(line.p[j]);
    }
  }
};

// Eight partial sums: divisions overlap, and the order never depends on the machine.
template <class U>
double sum_at(const Moving& line, const UtilityParams& u, double x) {
  auto at = [&](size_t j) { return U::at(line.t[j] + x * line.dt[j], line.q[j] + x * line.dq[j], line.p[j], u); };
  double sums[8] = {};
  size_t j = 0;
  for (; j + 8 <= line.t.size(); j += 8)
    for (size_t i = 0; i < 8; ++i) sums[i] += at(j + i);
  double total = 0.0;
  for (const double sum : sums) total += sum;
  for (; j < line.t.size(); ++j) total += at(j);
  return total;
}

struct Point {
  double x, value;
};

// Brent's method: parabolas through the three best points, golden sections where those do not behave. `start` lies in
// [low, high]; the answer is never below it.
template <class F>
Point refine(const F& at, double low, double high, Point start) {
  constexpr double kGolden = 0.3819660112501051, kTolerance = 1e-6;
  Point best = start, second = start, third = start;
  double move = 0.0, before = 0.0;
  for (int i = 0; i < 60; ++i) {
    const double middle = 0.5 * (low + high), least = kTolerance * (std::abs(best.x) + 1e-2);
    if (std::abs(best.x - middle) <= 2.0 * least - 0.5 * (high - low)) break;
    bool parabola = false;
    if (std::abs(before) > least) {
      const double r = (best.x - second.x) * (best.value - third.value);
      double q = (best.x - third.x) * (best.value - second.value);
      double p = (best.x - third.x) * q - (best.x - second.x) * r;
      q = 2.0 * (q - r);
      if (q > 0.0) p = -p;
      q = std::abs(q);
      const double last = before;
      before = move;
      if (q != 0.0 && std::abs(p) < std::abs(0.5 * q * last) && p > q * (low - best.x) && p < q * (high - best.x)) {
        parabola = true;
        move = p / q;
        const double x = best.x + move;
        if (x - low < 2.0 * least || high - x < 2.0 * least) move = best.x < middle ? least : -least;
      }
    }
    if (!parabola) {
      before = best.x < middle ? high - best.x : low - best.x;
      move = kGolden * before;
    }
    const double x = best.x + (std::abs(move) >= least ? move : std::copysign(least, move));
    const Point now{x, at(x)};
    if (now.value >= best.value) {
      (now.x < best.x ? high : low) = best.x;
      third = second;
      second = best;
      best = now;
    } else {
      (now.x < best.x ? low : high) = now.x;
      if (now.value >= second.value || second.x == best.x) {
        third = second;
        second = now;
      } else if (now.value >= third.value || third.x == best.x || third.x == second.x) {
        third = now;
      }
    }
  }
  return best;
}

template <class F>
LineStep search(const F& at, bool concave, int64_t n_grid) {
  const Point zero{0.0, at(0.0)}, one{1.0, at(1.0)};
  Point best = one.value > zero.value ? one : zero;
  double low = 0.0, high = 1.0;
  if (concave) {
    const Point inside{0.5, at(0.5)};  // Brent's method wants a start inside
    const Point found = refine(at, 0.0, 1.0, inside);
    if (found.value > best.value) best = found;
    return {best.x, best.value - zero.value};
  }
  const double width = 1.0 / static_cast<double>(n_grid);
  for (int64_t g = 1; g < n_grid; ++g) {
    const double x = static_cast<double>(g) * width, value = at(x);
    if (value > best.value) best = {x, value};
  }
  low = std::max(0.0, best.x - width);
  high = std::min(1.0, best.x + width);
  const Point found = refine(at, low, high, best);
  if (found.value > best.value) best = found;
  return {best.x, best.value - zero.value};
}

// Calls f.template operator()<U>() for the utility's type.
template <class F>
auto with_utility(Utility utility, const F& f) {
  switch (utility) {
    case Utility::kPrecision:
      return f.template operator()<Precision>();
    case Utility::kRecall:
      return f.template operator()<Recall>();
    case Utility::kFBeta:
      return f.template operator()<FBeta>();
    case Utility::kJaccard:
      return f.template operator()<Jaccard>();
    case Utility::kBalancedAccuracy:
      return f.template operator()<BalancedAccuracy>();
    case Utility::kGMean:
      return f.template operator()<GMean>();
    case Utility::kHMean:
      return f.template operator()<HMean>();
    case Utility::kFowlkesMallows:
      return f.template operator()<FowlkesMallows>();
    default:
      throw std::invalid_argument("this utility is no function of the counts");
  }
}

}  // namespace

LineStep best_step(const CountLine& line, Utility utility, double beta2, double epsilon, double scale, double per_hit,
                   bool concave) {
  const UtilityParams u{1.0, beta2, epsilon};
  const Moving moving(line);
  if (moving.t.empty()) return {};
  double slope = 0.0;
  for (const double dt : moving.dt) slope += per_hit * dt;
  const int64_t n_grid = std::clamp<int64_t>(20000 / static_cast<int64_t>(moving.t.size()), 8, 200);
  return with_utility(utility, [&]<class U>() {
    return search([&](double x) { return scale * sum_at<U>(moving, u, x) + x * slope; }, concave, n_grid);
  });
}

}  // namespace lt
