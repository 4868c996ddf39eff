// Labels of rows moved up to the nodes of a tree level: Y^(t) = Y C, where column l of Y falls on column node_of[l].
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/base/parallel.h"
#include "kernels/base/raw_vector.h"
#include "kernels/base/views.h"

namespace lt {

enum class NodeValue { one = 0, sum = 1, max = 2 };  // what a node gets from the labels below it

struct NodeLabels {
  std::vector<int64_t> indptr;  // (n_rows + 1)
  RawVector<int32_t> indices;   // (nnz) ascending within a row
  RawVector<float> values;      // (nnz)
};

NodeLabels node_labels(const CsrView& Y, const int32_t* node_of, NodeValue value, int n_threads);

}  // namespace lt
