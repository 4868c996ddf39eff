// The k best of a list of (score, id) pairs, by descending score, ties to the smaller id. The one tie rule of the
// library.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/base/views.h"

namespace lt {

constexpr float kInf = std::numeric_limits<float>::infinity();

struct Scored {
  float score;
  int32_t id;
};

// Strict weak order "a ranks before b". Scores are never NaN: inputs are checked at the door.
inline bool ranks_before(const Scored& a, const Scored& b) {
  return a.score > b.score || (a.score == b.score && a.id < b.id);
}

// Keeps the k best of items[0 .. n) in items[0 .. min(n, k)), sorted best first. Returns how many were kept.
inline int64_t keep_topk(Scored* items, int64_t n, int64_t k) {
  if (n > k) {
    std::nth_element(items, items + k, items + n, ranks_before);
    n = k;
  }
  std::sort(items, items + n, ranks_before);
  return n;
}

// Writes kept items to a row of k slots, padding with id -1 and score -inf.
inline void write_topk(const Scored* items, int64_t n, int64_t k, int32_t* ids, float* scores) {
  for (int64_t j = 0; j < k; ++j) {
    ids[j] = j < n ? items[j].id : -1;
    scores[j] = j < n ? items[j].score : -kInf;
  }
}

// Row-wise top k of stored entries (missing entries are not candidates).
void topk_csr(const CsrView& matrix, int64_t k, int n_threads, int32_t* ids, float* scores);

// Row-wise top k of a dense matrix.
void topk_dense(const MatrixView<const float>& matrix, int64_t k, int n_threads, int32_t* ids, float* scores);

}  // namespace lt
