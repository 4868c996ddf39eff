// Layers with a fixed number of weights per label: scores, both gradients, and the k best labels.
//
//   score of row r for label j = bias[j] + sum_{s < f} values[s, j] * x[r, index[s, j]]
//
// Rows of a batch are taken 16 at a time and turned, so that one input of 16 rows is one vector. What a task sums does
// not depend on the number of threads: scores and gradients of inputs go by rows, gradients of weights by labels.
#pragma once

#include <cstdint>

#include "kernels/base/parallel.h"
#include "kernels/base/views.h"

namespace lt {

struct FanIn {
  int64_t n_labels = 0;
  int64_t n_inputs = 0;               // h
  int64_t f = 0;                      // weights of a label
  const float* values = nullptr;      // (f, n_labels)
  const uint16_t* index16 = nullptr;  // (f, n_labels), values below n_inputs; or null
  const int32_t* index32 = nullptr;   // the same where 16 bits are too few
};

// out: (n, end - begin), scores of the labels begin .. end.
bool fan_in_scores(const FanIn& layer, const float* bias, const MatrixView<const float>& x, int64_t begin, int64_t end,
                   int n_threads, float* out, const Poll& poll = {});

// Of gradients g (n, end - begin) by those scores: dx (n, h) += that of the inputs, dw (f, end - begin) that of values.
bool fan_in_gradients(const FanIn& layer, const MatrixView<const float>& x, const MatrixView<const float>& g,
                      int64_t begin, int64_t end, int n_threads, float* dx, float* dw, const Poll& poll = {});

// The k best labels of every row, best first, ties to the smaller label; padded with -1 and -inf.
bool fan_in_top(const FanIn& layer, const float* bias, const MatrixView<const float>& x, int64_t k, int n_threads,
                int32_t* ids, float* scores, const Poll& poll = {});

}  // namespace lt
