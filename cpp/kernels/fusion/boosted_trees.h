// Gradient-boosted trees for a yes or no: grown on binned features, answered from plain arrays.
//
// score(x) = base + sum over trees of the value of the leaf that x falls into; the probability is 1 / (1 +
// exp(-score)).
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/base/parallel.h"
#include "kernels/base/views.h"

namespace lt {

// All trees, one behind the other. An inner node sends x to `child` if x[feature] <= threshold, else to `child` + 1;
// a leaf has the feature -1. Children come after their parent, so that every walk ends.
struct TreeArrays {
  int64_t n_trees;
  const int32_t* roots;    // (n_trees,)
  const int32_t* feature;  // (n_nodes,) from here on
  const float* threshold;
  const int32_t* child;
  const double* value;
  double base;

  double score(const float* x) const {
    double sum = base;
    for (int64_t t = 0; t < n_trees; ++t) {
      int32_t node = roots[t];
      while (feature[node] >= 0) node = child[node] + (x[feature[node]] <= threshold[node] ? 0 : 1);
      sum += value[node];
    }
    return sum;
  }
};

struct BoostedTrees {
  std::vector<int32_t> roots, feature, child;
  std::vector<float> threshold;
  std::vector<double> value;
  double base = 0;
};

struct BoostOptions {
  int64_t n_trees;
  int64_t n_leaves;  // of one tree, at most
  int64_t min_rows;  // of a leaf, at least
  double rate;       // what a leaf counts of its Newton step
  double l2;         // added to the curvature of a leaf
};

// Thresholds between the bins of every feature: those of feature f are values[offsets[f] .. offsets[f + 1]), ascending,
// at most 255. A value lies in the bin of the first threshold that is not below it.
struct BinEdges {
  const int64_t* offsets;  // (n_features + 1,)
  const float* values;
};

// Fits trees to targets in [0, 1] by the binary cross-entropy, every row counting as much as its weight, as in "Greedy
// function approximation: a gradient boosting machine" (Friedman 2001) with Newton steps and leaves grown best first on
// histograms. Work is divided by feature, so that the bits do not depend on the number of threads. Stops early, with
// the trees so far dropped, where poll says so: returns false then.
bool fit_boosted_trees(const MatrixView<const float>& rows, const float* targets, const float* weights,
                       const BinEdges& edges, const BoostOptions& options, int n_threads, const Poll& poll,
                       BoostedTrees* out);

// Writes the score of every row, (n_rows,).
void boosted_scores(const MatrixView<const float>& rows, const TreeArrays& trees, int n_threads, double* out);

}  // namespace lt
