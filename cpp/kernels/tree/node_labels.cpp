#include "kernels/tree/node_labels.h"

#include <algorithm>
#include <utility>

namespace lt {

NodeLabels node_labels(const CsrView& Y, const int32_t* node_of, NodeValue value, int n_threads) {
  // A row never grows, so it is rewritten within its old place first, and the rows are moved together afterwards.
  NodeLabels out;
  out.indptr.assign(Y.n_rows + 1, 0);
  RawVector<int32_t> nodes(Y.nnz());
  RawVector<float> values(Y.nnz());
  constexpr int64_t kRows = 4096;

  parallel_blocks(Y.n_rows, kRows, n_threads, [&](int64_t begin, int64_t end, int) {
    std::vector<std::pair<int32_t, float>> row;
    for (int64_t i = begin; i < end; ++i) {
      row.clear();
      for (int64_t t = Y.begin(i); t < Y.end(i); ++t) row.emplace_back(node_of[Y.indices[t]], Y.values[t]);
      // Equal nodes are summed in order of value: the sum does not depend on how labels are numbered.
      std::sort(row.begin(), row.end());
      int64_t last = Y.begin(i) - 1;
      for (const auto& [node, weight] : row) {
        const float w = value == NodeValue::one ? 1.0f : weight;
        if (last < Y.begin(i) || nodes[last] != node) {
          nodes[++last] = node;
          values[last] = w;
        } else if (value == NodeValue::sum) {
          values[last] += w;
        } else {
          values[last] = std::max(values[last], w);
        }
      }
      out.indptr[i + 1] = last + 1 - Y.begin(i);
    }
  });
  for (int64_t i = 0; i < Y.n_rows; ++i) out.indptr[i + 1] += out.indptr[i];
  out.indices.resize(out.indptr[Y.n_rows]);
  out.values.resize(out.indptr[Y.n_rows]);
  parallel_blocks(Y.n_rows, kRows, n_threads, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t n = out.indptr[i + 1] - out.indptr[i];
      std::copy_n(nodes.data() + Y.begin(i), n, out.indices.data() + out.indptr[i]);
      std::copy_n(values.data() + Y.begin(i), n, out.values.data() + out.indptr[i]);
    }
  });
  return out;
}

}  // namespace lt
