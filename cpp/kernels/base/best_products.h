// The k best of a stream of scores.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/base/topk.h"

namespace lt {

// The k best of a stream, in whatever order it comes.
class BestProducts {
 public:
  explicit BestProducts(int64_t k) : k_(k) {}

  void offer(float score, int32_t id) {
    if (!(score >= worst_)) return;  // nor NaN
    items_.push_back({score, id});
    if (static_cast<int64_t>(items_.size()) < 2 * k_ + 16) return;
    std::nth_element(items_.begin(), items_.begin() + k_ - 1, items_.end(), ranks_before);
    items_.resize(k_);
    worst_ = items_.back().score;
  }
  void write(int32_t* ids, float* scores) {
    const int64_t kept = keep_topk(items_.data(), static_cast<int64_t>(items_.size()), k_);
    write_topk(items_.data(), kept, k_, ids, scores);
  }

 private:
  int64_t k_;
  float worst_ = -kInf;  // no item below this can be among the k best
  std::vector<Scored> items_;
};

}  // namespace lt
