#include "kernels/base/topk.h"

#include "kernels/base/parallel.h"

namespace lt {

void topk_csr(const CsrView& matrix, int64_t k, int n_threads, int32_t* ids, float* scores) {
  constexpr int64_t kRowsPerTask = 256;
  parallel_blocks(matrix.n_rows, kRowsPerTask, n_threads, [&](int64_t begin, int64_t end, int) {
    std::vector<Scored> items;
    for (int64_t i = begin; i < end; ++i) {
      items.clear();
      for (int64_t p = matrix.begin(i); p < matrix.end(i); ++p) items.push_back({matrix.values[p], matrix.indices[p]});
      const int64_t kept = keep_topk(items.data(), static_cast<int64_t>(items.size()), k);
      write_topk(items.data(), kept, k, ids + i * k, scores + i * k);
    }
  });
}

void topk_dense(const MatrixView<const float>& matrix, int64_t k, int n_threads, int32_t* ids, float* scores) {
  parallel_blocks(matrix.n_rows, 16, n_threads, [&](int64_t begin, int64_t end, int) {
    std::vector<Scored> items(matrix.n_cols);
    for (int64_t i = begin; i < end; ++i) {
      const float* row = matrix.row(i);
      for (int64_t j = 0; j < matrix.n_cols; ++j) items[j] = {row[j], static_cast<int32_t>(j)};
      const int64_t kept = keep_topk(items.data(), matrix.n_cols, k);
      write_topk(items.data(), kept, k, ids + i * k, scores + i * k);
    }
  });
}

}  // namespace lt
