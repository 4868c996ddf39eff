#include "kernels/decide/bootstrap.h"

#include <algorithm>
#include <vector>

#include "kernels/base/counter_random.h"

namespace lt {

namespace {

// Resamples that share one pass over the terms: the pass is bound by memory, the accumulators stay in cache.
constexpr int64_t kGroup = 8;

}  // namespace

void resample_counts(int64_t n, uint64_t seed, int64_t b, uint16_t* counts) {
  std::fill(counts, counts + n, uint16_t{0});
  const uint64_t stream = mix64(seed + mix64(static_cast<uint64_t>(b) + 0x9e3779b97f4a7c15ULL));
  for (int64_t j = 0; j < n; ++j) {
    const uint64_t bits = mix64(stream + static_cast<uint64_t>(j + 1) * 0x9e3779b97f4a7c15ULL);
    const double uniform = static_cast<double>(bits >> 11) * 0x1.0p-53;
    // A row is drawn more than 65,535 times with probability below 1 / 65536!.
    ++counts[static_cast<int64_t>(uniform * static_cast<double>(n))];
  }
}

void resample_sums(const MatrixView<const double>& terms, int64_t n_resamples, uint64_t seed, int n_threads,
                   double* sums, const Poll& poll) {
  const int64_t n = terms.n_rows, width = terms.n_cols;
  std::fill(sums, sums + n_resamples * width, 0.0);
  const int64_t n_groups = (n_resamples + kGroup - 1) / kGroup;
  std::vector<std::vector<uint16_t>> scratch(static_cast<size_t>(n_threads));
  parallel_for(
      n_groups, n_threads,
      [&](int64_t group, int worker) {
        const int64_t first = group * kGroup, size = std::min(kGroup, n_resamples - first);
        std::vector<uint16_t>& counts = scratch[static_cast<size_t>(worker)];
        counts.resize(static_cast<size_t>(kGroup * n));
        for (int64_t r = 0; r < size; ++r) resample_counts(n, seed, first + r, counts.data() + r * n);
        for (int64_t i = 0; i < n; ++i) {
          const double* row = terms.row(i);
          for (int64_t r = 0; r < size; ++r) {
            const double count = counts[static_cast<size_t>(r * n + i)];
            double* out = sums + (first + r) * width;
            for (int64_t m = 0; m < width; ++m) out[m] += count * row[m];
          }
        }
      },
      poll);
}

}  // namespace lt
