// Which label that is not a candidate of a row would cost least, if the row had to name one?
//
// A sparse matrix of probabilities leaves most labels out; their probability is taken as 0. When every row must name
// exactly k labels and the k-th best candidate would lower the utility, a label that is absent from the row may lower
// it less (one that is never right anywhere loses nothing). This is a tournament tree over all labels: a leaf holds
// what predicting the label once more with probability 0 would gain, an inner node the better of its children. A change
// costs O(log L), and the best label outside a few excluded ones is found in O(excluded * log L).
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace lt {

class IdleLabels {
 public:
  bool ready() const { return !winner_.empty(); }
  void forget() { winner_.clear(); }

  // gains: (L), -inf for labels that may not be named.
  void build(std::vector<double> gains) {
    gains_ = std::move(gains);
    leaves_ = 1;
    while (leaves_ < gains_.size()) leaves_ *= 2;
    winner_.assign(2 * leaves_, -1);
    for (size_t j = 0; j < gains_.size(); ++j) winner_[leaves_ + j] = static_cast<int32_t>(j);
    for (size_t node = leaves_ - 1; node > 0; --node) winner_[node] = better(winner_[2 * node], winner_[2 * node + 1]);
  }

  void set(int32_t label, double gain) {
    if (gains_[label] == gain) return;
    gains_[label] = gain;
    for (size_t node = (leaves_ + static_cast<size_t>(label)) / 2; node > 0; node /= 2) {
      const int32_t now = better(winner_[2 * node], winner_[2 * node + 1]);
      if (now == winner_[node] && now != label) return;  // lost to the same label as before: nothing changes above
      winner_[node] = now;
    }
  }

  bool allowed(int32_t label) const { return gains_[label] != kNever; }

  // Calls take(label, gain) from the best label down until it returns false; labels with skip(label) are left out.
  template <class Skip, class Take>
  void visit(const Skip& skip, const Take& take) {
    auto worse = [this](size_t a, size_t b) { return winner_[a] != better(winner_[a], winner_[b]); };
    auto push = [&](size_t node) {
      open_.push_back(node);
      std::push_heap(open_.begin(), open_.end(), worse);
    };
    open_.assign(1, 1);
    while (!open_.empty()) {
      std::pop_heap(open_.begin(), open_.end(), worse);
      const size_t node = open_.back();
      open_.pop_back();
      const int32_t label = winner_[node];
      if (label < 0 || gains_[label] == kNever) return;
      if (node >= leaves_) {
        if (!skip(label) && !take(label, gains_[label])) return;
      } else {
        push(2 * node);
        push(2 * node + 1);
      }
    }
  }

  static constexpr double kNever = -std::numeric_limits<double>::infinity();

 private:
  int32_t better(int32_t a, int32_t b) const {  // larger gain, then smaller id; -1 is nobody
    if (a < 0 || b < 0) return a < 0 ? b : a;
    if (gains_[a] != gains_[b]) return gains_[a] > gains_[b] ? a : b;
    return a < b ? a : b;
  }

  std::vector<double> gains_;
  std::vector<int32_t> winner_;  // heap order: children of node i are 2i and 2i + 1
  std::vector<size_t> open_;     // nodes yet to visit, a heap
  size_t leaves_ = 1;
};

}  // namespace lt
