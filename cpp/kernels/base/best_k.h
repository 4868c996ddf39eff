// The k best of a stream of (score, id) pairs, whatever their order; ties as in topk.h.
//
// If `products` is set, scores are logarithms of what is wanted: equal logarithms are not enough then, because products
// may be equal in float32 whose logarithms are not, and of those the smaller id must win whatever k. So all that may
// tie with the last of the best are kept until `finish` turns them into products.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/base/topk.h"

namespace lt {

struct BestK {
  std::vector<Scored> items;
  int64_t k = 0;
  int64_t limit = 0;        // number of items at which to prune
  float threshold = -kInf;  // nothing below it can be among the best
  bool products = false;

  // Begins anew; nothing below `least` will be kept.
  void reset(int64_t wanted, float least = -kInf, bool as_products = false) {
    items.clear();
    k = wanted;
    limit = 2 * wanted + 64;
    threshold = least;
    products = as_products;
    items.reserve(std::min<int64_t>(limit, 4096));
  }
  void push(float score, int32_t id) {
    if (!(score >= threshold)) return;  // nor NaN
    items.push_back({score, id});
    if (static_cast<int64_t>(items.size()) >= limit) prune();
  }
  void prune() {
    if (static_cast<int64_t>(items.size()) <= k) return;
    const auto rest = items.begin() + k;
    std::nth_element(items.begin(), rest - 1, items.end(), ranks_before);
    threshold = items[k - 1].score;
    if (!products) {
      items.resize(k);
      return;
    }
    // exp() is flat over half an ulp of its value, and below -86 its values are coarse or vanish.
    threshold = threshold < -86 ? -kInf : threshold - 5e-7f * (1 - threshold);
    items.erase(std::partition(rest, items.end(), [&](const Scored& item) { return item.score >= threshold; }),
                items.end());
    limit = std::max<int64_t>(limit, 2 * static_cast<int64_t>(items.size()));
  }
  // Sorts, best first, and returns how many there are, k at most.
  int64_t finish() {
    if (products) {
      prune();
      for (Scored& item : items) item.score = std::exp(item.score);
    }
    return keep_topk(items.data(), static_cast<int64_t>(items.size()), k);
  }
  void write(int32_t* ids, float* scores) {
    const int64_t kept = finish();
    write_topk(items.data(), kept, k, ids, scores);
  }
};

}  // namespace lt
