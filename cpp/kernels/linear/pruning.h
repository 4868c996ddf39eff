// How small a weight may be before it is dropped, when the user gives a budget instead of a threshold.
#pragma once

#include "kernels/linear/lane_problem.h"

namespace lt {

// For every lane the largest cutoff, by bisection, such that dropping the weights below it (bias included) raises the
// lane's objective by at most `budget` times itself. Bisection ends when the numbers of weights kept at its two ends
// differ by at most a tenth (or by one); the cutoff returned is the one within budget.
void cutoffs_by_budget(const LaneRows& rows, const LaneTargets& targets, const SolverParams& params,
                       const float* weights, float budget, float* cutoff);

}  // namespace lt
