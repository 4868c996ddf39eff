// Utilities of one label's confusion counts, as block coordinate ascent needs them.
//
// A label is described by t (expected true positives), q (predicted positives) and p (expected positives), all counts
// over n rows: tp = t, fp = q - t, fn = p - t, tn = n - q - p + t. While labels are chosen only t and q move.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace lt {

// t, q, p as above and `value`, the utility at (t, q, p), kept up to date so that a gain costs one evaluation. Coverage
// uses the fields its own way, see block_ascent.cpp.
struct LabelState {
  double t = 0.0, q = 0.0, p = 0.0, value = 0.0;
};

struct UtilityParams {
  double n_rows = 1.0;
  double beta2 = 1.0;    // beta squared of F-beta
  double epsilon = 0.0;  // added to denominators, in counts (n_rows times that of normalised counts)
};

// 0/0 is 0, as in every metric of the library.
inline double ratio(double a, double b) { return b > 0.0 ? a / b : 0.0; }

struct NoUtility {  // the objective is precision alone
  static double at(double, double, double, const UtilityParams&) { return 0.0; }
};
struct Precision {
  static double at(double t, double q, double, const UtilityParams& u) { return ratio(t, q + u.epsilon); }
};
struct Recall {
  static double at(double t, double, double p, const UtilityParams& u) { return ratio(t, p + u.epsilon); }
};
struct FBeta {
  static double at(double t, double q, double p, const UtilityParams& u) {
    return ratio((1.0 + u.beta2) * t, u.beta2 * p + q + u.epsilon);
  }
};
struct Jaccard {
  static double at(double t, double q, double p, const UtilityParams& u) { return ratio(t, p + q - t + u.epsilon); }
};
struct FowlkesMallows {  // sqrt(precision * recall)
  static double at(double t, double q, double p, const UtilityParams& u) {
    return ratio(t, std::sqrt((q + u.epsilon) * (p + u.epsilon)));
  }
};

inline double true_positive_rate(double t, double p, const UtilityParams& u) { return ratio(t, p + u.epsilon); }
inline double true_negative_rate(double t, double q, double p, const UtilityParams& u) {
  return ratio(std::max(0.0, u.n_rows - q - p + t), u.n_rows - p + u.epsilon);
}
struct BalancedAccuracy {
  static double at(double t, double q, double p, const UtilityParams& u) {
    return 0.5 * (true_positive_rate(t, p, u) + true_negative_rate(t, q, p, u));
  }
};
struct GMean {  // sqrt(recall * specificity)
  static double at(double t, double q, double p, const UtilityParams& u) {
    return std::sqrt(true_positive_rate(t, p, u) * true_negative_rate(t, q, p, u));
  }
};
struct HMean {  // harmonic mean of recall and specificity
  static double at(double t, double q, double p, const UtilityParams& u) {
    const double r = true_positive_rate(t, p, u), s = true_negative_rate(t, q, p, u);
    return ratio(2.0 * r * s, r + s);
  }
};

}  // namespace lt
