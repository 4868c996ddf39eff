#include "kernels/codes/pattern_product.h"

#include <stdexcept>
#include <string>

#include "kernels/base/dense.h"

namespace lt {

bool pattern_product(const CsrView& pattern, const MatrixView<const float>& a, const MatrixView<const float>& b,
                     int n_threads, float* out, const Poll& poll) {
  const DenseKernels& dense = LT_DISPATCH(dense);
  auto rows = [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i)
      for (int64_t p = pattern.begin(i); p < pattern.end(i); ++p) {
        const int32_t j = pattern.indices[p];
        if (j < 0 || j >= pattern.n_cols)
          throw std::out_of_range("column " + std::to_string(j) + " lies outside the pattern");
        out[p] = dense.dot(a.row(i), b.row(j), a.n_cols);
      }
  };
  constexpr int64_t kRowsPerTask = 64;
  return parallel_blocks(pattern.n_rows, kRowsPerTask, n_threads, rows, poll);
}

}  // namespace lt
