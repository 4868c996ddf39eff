#include "kernels/outputs/short_rows.h"

#include <algorithm>
#include <vector>

#include "kernels/base/best_k.h"
#include "kernels/base/dense.h"
#include "kernels/outputs/output_kernels.h"

namespace lt {

namespace {

constexpr int64_t kShortQueries = 64;  // share a block of rows once it is unpacked

// Calls each(first, width, products) for every block of 16 rows: products of the queries begin .. end, 16 of each.
template <class Each>
void over_blocks(const ShortRows& rows, const MatrixView<const float>& queries, int64_t begin, int64_t end,
                 const Each& each) {
  const OutputKernels& kernels = LT_DISPATCH(output_kernels);
  const DenseKernels& dense = LT_DISPATCH(dense);
  const int64_t d = rows.n_cols;
  std::vector<float> block(d * 16), found((end - begin) * 16);
  for (int64_t first = 0; first < rows.n_rows; first += 16) {
    const int64_t width = std::min<int64_t>(16, rows.n_rows - first);
    if (rows.sixteen)
      kernels.unpack16(rows.sixteen + first * d, width, d, block.data());
    else
      kernels.unpack8(rows.eight + first * d, width, d, block.data());
    dense.dot_block(queries.row(begin), end - begin, block.data(), d, found.data());
    each(first, width, found.data());
  }
}

}  // namespace

bool top_short_rows(const ShortRows& rows, const float* bias, const MatrixView<const float>& queries, int64_t k,
                    int n_threads, int32_t* ids, float* products, const Poll& poll) {
  auto search = [&](int64_t begin, int64_t end, int) {
    std::vector<BestK> best(end - begin);
    for (BestK& each : best) each.reset(k);
    over_blocks(rows, queries, begin, end, [&](int64_t first, int64_t width, const float* found) {
      for (int64_t q = 0; q < end - begin; ++q)
        for (int64_t i = 0; i < width; ++i)
          best[q].push(found[q * 16 + i] + (bias ? bias[first + i] : 0.0f), static_cast<int32_t>(first + i));
    });
    for (int64_t q = begin; q < end; ++q) best[q - begin].write(ids + q * k, products + q * k);
  };
  return parallel_blocks(queries.n_rows, kShortQueries, n_threads, search, poll);
}

bool short_products(const ShortRows& rows, const float* bias, const MatrixView<const float>& queries, int n_threads,
                    float* out, const Poll& poll) {
  auto multiply = [&](int64_t begin, int64_t end, int) {
    over_blocks(rows, queries, begin, end, [&](int64_t first, int64_t width, const float* found) {
      for (int64_t q = 0; q < end - begin; ++q)
        for (int64_t i = 0; i < width; ++i)
          out[(begin + q) * rows.n_rows + first + i] = found[q * 16 + i] + (bias ? bias[first + i] : 0.0f);
    });
  };
  return parallel_blocks(queries.n_rows, kShortQueries, n_threads, multiply, poll);
}

}  // namespace lt
