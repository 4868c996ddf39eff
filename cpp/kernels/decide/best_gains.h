// The k best (gain, label) pairs of a row: larger gain first, ties to the more probable label, then to the smaller id.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace lt {

struct Gain {
  double gain;
  int32_t id;
  float eta;  // probability of the label in this row; 0 for a label that is not a candidate
};

inline bool gains_more(const Gain& a, const Gain& b) {
  if (a.gain != b.gain) return a.gain > b.gain;
  return a.eta > b.eta || (a.eta == b.eta && a.id < b.id);
}

// Offers arrive in any order; `items()` is sorted, best first. Small budgets insert into a sorted list, where nearly
// every offer fails against the last entry; large ones collect and select at the end.
class BestGains {
 public:
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();

  explicit BestGains(int64_t k) : k_(static_cast<size_t>(k)), insert_(k <= 32) { items_.reserve(insert_ ? k_ + 1 : 0); }

  void clear() { items_.clear(); }
  void offer(const Gain& item) {
    if (!insert_) {
      items_.push_back(item);
      return;
    }
    if (items_.size() == k_) {
      if (!gains_more(item, items_.back())) return;
      items_.pop_back();
    }
    size_t at = items_.size();
    items_.push_back(item);
    for (; at > 0 && gains_more(item, items_[at - 1]); --at) items_[at] = items_[at - 1];
    items_[at] = item;
  }
  void finish() {
    if (insert_) return;
    if (items_.size() > k_) {
      std::nth_element(items_.begin(), items_.begin() + static_cast<int64_t>(k_), items_.end(), gains_more);
      items_.resize(k_);
    }
    std::sort(items_.begin(), items_.end(), gains_more);
  }
  // After finish(): puts one more in its place, if it belongs among the k best.
  bool insert(const Gain& item) {
    if (items_.size() == k_) {
      if (k_ == 0 || !gains_more(item, items_.back())) return false;
      items_.pop_back();
    }
    items_.insert(std::upper_bound(items_.begin(), items_.end(), item, gains_more), item);
    return true;
  }
  // Gains below this need not be offered.
  double least() const { return insert_ && items_.size() == k_ ? items_.back().gain : -kInfinity; }
  bool full() const { return items_.size() >= k_; }
  std::vector<Gain>& items() { return items_; }

 private:
  size_t k_;
  bool insert_;
  std::vector<Gain> items_;
};

}  // namespace lt
