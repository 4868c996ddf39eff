#include "kernels/base/unit_rows.h"

#include <cmath>

#include "kernels/base/parallel.h"

namespace lt {

void unit_rows(int64_t n_rows, const int64_t* indptr, const float* values, int n_threads, float* out) {
  parallel_blocks(n_rows, 4096, n_threads, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      double sum = 0;
      for (int64_t p = indptr[i]; p < indptr[i + 1]; ++p) sum += static_cast<double>(values[p]) * values[p];
      const double scale = sum > 0 ? 1 / std::sqrt(sum) : 1;
      for (int64_t p = indptr[i]; p < indptr[i + 1]; ++p) out[p] = static_cast<float>(values[p] * scale);
    }
  });
}

}  // namespace lt
