// A sum of label utilities along a line of counts: sum_j u(t_j + x dt_j, q_j + x dq_j, p_j) at several x. The inner
// loop of Frank-Wolfe's line search.
#pragma once

#include <cstdint>

#include "kernels/block_ascent.h"

namespace lt {

struct CountLine {
  int64_t n_labels = 0;
  const double* t = nullptr;   // (n_labels) fractions of the rows
  const double* q = nullptr;   // (n_labels)
  const double* p = nullptr;   // (n_labels)
  const double* dt = nullptr;  // (n_labels)
  const double* dq = nullptr;  // (n_labels)
};

// out[s] = the sum at steps[s].
void utility_along(const CountLine& line, Utility utility, double beta2, double epsilon, int64_t n_steps,
                   const double* steps, double* out);

}  // namespace lt
