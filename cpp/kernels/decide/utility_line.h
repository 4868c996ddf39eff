// A sum of label utilities along a line of counts: sum_j u(t_j + x dt_j, q_j + x dq_j, p_j), and the x in [0, 1] at
// which it is largest. The line search of Frank-Wolfe.
#pragma once

#include <cstdint>

#include "kernels/decide/block_ascent.h"

namespace lt {

struct CountLine {
  int64_t n_labels = 0;
  const double* t = nullptr;      // (n_labels) at the start, as fractions of the rows
  const double* q = nullptr;      // (n_labels)
  const double* t_end = nullptr;  // (n_labels) at x = 1
  const double* q_end = nullptr;  // (n_labels)
  const double* p = nullptr;      // (n_labels)
};

struct LineStep {
  double step = 0.0;
  double gain = 0.0;  // on step 0; never negative
};

// The step of largest scale * sum + per_hit * sum_j t_j, and what it gains on step 0. A concave sum is searched by
// Brent's method alone; any other is first evaluated on a grid, fine where few labels move and coarse where many do
// (their sum is smooth), and the neighbourhood of the best is refined.
LineStep best_step(const CountLine& line, Utility utility, double beta2, double epsilon, double scale, double per_hit,
                   bool concave);

}  // namespace lt
