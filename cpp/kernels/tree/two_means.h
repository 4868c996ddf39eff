// One balanced split in two, of members given by what can be done with a row (see balanced_kmeans.h for the method).
//
// Most scores need not be computed again in every iteration. When the direction c = c_right - c_left changes by D, no
// score changes by more than D times the longest row, so each member has an interval its score must lie in; only those
// whose interval may reach the cut are scored anew. The assignment is the one that scoring all would give.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

#include "kernels/base/counter_random.h"
#include "kernels/base/views.h"
#include "kernels/tree/two_means_kernels.h"

namespace lt {

// body(begin, end, worker) over blocks of [0, n); false if the run was stopped.
using Loop = std::function<bool(int64_t n, int64_t grain, const std::function<void(int64_t, int64_t, int)>& body)>;

// What is found in one block of members: how many are listed, and how many are certainly on the left.
struct MemberBlock {
  int64_t n_listed, n_left;
};

// What one worker adds to a sum over features, and where: merging looks at the features in use only.
struct PartialSum {
  static constexpr int kShift = 6;  // 64 features share a mark
  std::vector<int64_t> sum;         // (features)
  std::vector<uint8_t> marks;       // (features / 64)
  bool used = false;
};

// What one worker knows of a selection: how many keys have which first bits, and those that may be the one.
struct SelectionPart {
  std::vector<uint32_t> histogram;
  std::vector<uint64_t> candidates;
};

struct TwoMeansScratch {
  std::vector<float> score, drift_then;      // (members): last score, and the drift when it was computed
  std::vector<uint64_t> keys, sorted;        // (members scored in this iteration)
  std::vector<SelectionPart> selection;      // (workers)
  std::vector<int8_t> left, change;          // (members): on the left now; +1 came, -1 went
  std::vector<int32_t> chosen;               // (members): the first ones are to be scored, or added to a sum
  std::vector<MemberBlock> found;            // (blocks of members)
  std::vector<float> direction;              // (features) c_right - c_left
  std::vector<int64_t> left_sum, total_sum;  // (features) in fixed point
  std::vector<PartialSum> extra;             // (workers - 1) what other workers add to a sum
  std::vector<double> blocks;                // (feature blocks, 2) terms of a sum over features
};

struct TwoMeansParams {
  int64_t n, n_left;  // members, and how many go left
  float unit;         // values times this are the integers that centroids sum
  float longest;      // no member is longer
  bool spherical;
  int max_iter;
};

template <class Members>
class TwoMeans {
 public:
  TwoMeans(const Members& members, const TwoMeansParams& params, TwoMeansScratch& scratch, const Loop& loop,
           int n_workers)
      : members_(members), p_(params), s_(scratch), loop_(loop), kernels_(LT_DISPATCH(split_kernels)) {
    const int64_t d = members.n_features();
    s_.score.resize(p_.n);
    s_.drift_then.resize(p_.n);
    s_.keys.resize(p_.n);
    s_.chosen.resize(p_.n);
    s_.found.resize((p_.n + kGrain - 1) / kGrain);
    s_.left.assign(p_.n, 0);
    s_.change.assign(p_.n, 0);
    s_.direction.assign(d, 0.0f);
    s_.left_sum.assign(d, 0);
    s_.total_sum.assign(d, 0);
    s_.extra.resize(n_workers - 1);
    for (auto& part : s_.extra) {  // merging has left them at zero
      part.sum.resize(d, 0);
      part.marks.resize((d >> PartialSum::kShift) + 1, 0);
    }
    s_.selection.resize(n_workers);
    s_.blocks.assign(2 * ((d + kFeatureGrain - 1) / kFeatureGrain), 0.0);
  }

  // Leaves the assignment in scratch.left; false if stopped.
  bool run(RandomStream random) {
    const uint32_t a = random.below(static_cast<uint32_t>(p_.n));
    const uint32_t other = random.below(static_cast<uint32_t>(p_.n - 1));
    members_.add(other + (other >= a), 1.0f, s_.direction.data());
    members_.add(a, -1.0f, s_.direction.data());
    for (int iteration = 0;; ++iteration) {
      choose(iteration < 2);  // the first centroids are far from the seeds
      if (stopped_ || !score()) return false;
      assign();
      list_changes();
      if (stopped_) return false;
      if ((iteration > 0 && n_chosen_ == 0) || iteration + 1 == p_.max_iter) return true;
      if (!add_changes(s_.left_sum)) return false;
      if (iteration == 0) {
        for (int64_t i = 0; i < p_.n; ++i) s_.change[i] = !s_.left[i];
        list_changes();
        if (stopped_ || !add_changes(s_.total_sum)) return false;
        for (size_t f = 0; f < s_.total_sum.size(); ++f) s_.total_sum[f] += s_.left_sum[f];
      }
      if (!update_direction()) return false;
    }
  }

 private:
  static constexpr int64_t kRowGrain = 512;       // rows a thread takes at a time
  static constexpr int64_t kFeatureGrain = 8192;  // features whose squares are summed as one term
  static constexpr int64_t kManyKeys = 1 << 13;   // from which on a selection counts first
  static constexpr int kKeyBits = 13;             // the first ones, which are counted by
  static constexpr int64_t kGrain = 1 << 11;      // members, or keys, a thread looks at
  static constexpr float kRounding = 1e-5f;       // more than a dot product of unit vectors is off by

  // Scores as integers in the same order, with the position as tie rule: keys are distinct, so a cut is a set.
  static uint64_t sort_key(float score, int32_t position) {
    const uint32_t bits = std::bit_cast<uint32_t>(score + 0.0f);  // -0 becomes +0
    const uint32_t ordered = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
    return uint64_t{ordered} << 32 | static_cast<uint32_t>(position);
  }
  static float score_of(uint64_t key) {
    const uint32_t ordered = static_cast<uint32_t>(key >> 32);
    return std::bit_cast<float>(ordered & 0x80000000u ? ordered & 0x7FFFFFFFu : ~ordered);
  }

  // The k-th smallest of key(0) .. key(n - 1). Many are counted by their first bits, all workers at it; only those that
  // share the first bits of the k-th are compared.
  template <class Key>
  uint64_t nth_key(int64_t n, int64_t k, const Key& key) {
    s_.sorted.clear();
    if (n < kManyKeys) {
      for (int64_t i = 0; i < n; ++i) s_.sorted.push_back(key(i));
    } else {
      const auto first_bits = [&](int64_t i) { return key(i) >> (64 - kKeyBits); };
      for (SelectionPart& part : s_.selection) {
        part.histogram.assign(size_t{1} << kKeyBits, 0);
        part.candidates.clear();
      }
      run_loop(n, kGrain, [&](int64_t begin, int64_t end, int worker) {
        uint32_t* histogram = s_.selection[worker].histogram.data();
        for (int64_t i = begin; i < end; ++i) ++histogram[first_bits(i)];
      });
      uint64_t wanted = 0;
      for (; wanted >> kKeyBits == 0; ++wanted) {
        int64_t count = 0;
        for (const SelectionPart& part : s_.selection) count += part.histogram[wanted];
        if (k < count) break;
        k -= count;
      }
      run_loop(n, kGrain, [&](int64_t begin, int64_t end, int worker) {
        for (int64_t i = begin; i < end; ++i)
          if (first_bits(i) == wanted) s_.selection[worker].candidates.push_back(key(i));
      });
      if (stopped_) return 0;
      for (const SelectionPart& part : s_.selection)
        s_.sorted.insert(s_.sorted.end(), part.candidates.begin(), part.candidates.end());
    }
    std::nth_element(s_.sorted.begin(), s_.sorted.begin() + k, s_.sorted.end());
    return s_.sorted[k];
  }

  void run_loop(int64_t n, int64_t grain, const std::function<void(int64_t, int64_t, int)>& body) {
    if (!stopped_ && !loop_(n, grain, body)) stopped_ = true;
  }

  // Calls look(i, block) for every member and lists those for which it is true in `chosen`, in order.
  template <class Look>
  void list(const Look& look) {
    run_loop(p_.n, kGrain, [&](int64_t begin, int64_t end, int) {
      MemberBlock block = {0, 0};
      for (int64_t i = begin; i < end; ++i) {  // at the place of the block; a later one writes over what is not listed
        s_.chosen[begin + block.n_listed] = static_cast<int32_t>(i);
        block.n_listed += look(i, block);
      }
      s_.found[begin / kGrain] = block;
    });
    n_chosen_ = n_sure_ = 0;
    for (size_t b = 0; !stopped_ && b < s_.found.size(); ++b) {
      std::memmove(&s_.chosen[n_chosen_], &s_.chosen[b * kGrain], s_.found[b].n_listed * sizeof(int32_t));
      n_chosen_ += s_.found[b].n_listed;
      n_sure_ += s_.found[b].n_left;
    }
  }

  // Assigns the members whose side is certain, counts those on the left, and lists the others in `chosen`.
  void choose(bool all) {
    if (all) return list([](int64_t, MemberBlock&) { return true; });
    // The score at the cut is at least the same order statistic of lower ends, at most that of upper ends.
    const auto order_statistic = [&](float sign) {
      const auto bound = [&](int64_t i) { return sort_key(s_.score[i] + sign * (drift_ - s_.drift_then[i]), 0); };
      return score_of(nth_key(p_.n, p_.n_left, bound));
    };
    const float cut_low = order_statistic(-1.0f), cut_high = order_statistic(1.0f);
    list([&](int64_t i, MemberBlock& block) {
      const float slack = drift_ - s_.drift_then[i];
      const bool left = s_.score[i] + slack < cut_low, right = !left && s_.score[i] - slack > cut_high;
      if (left || right) place(static_cast<int32_t>(i), left);
      block.n_left += left;
      return !left && !right;
    });
  }

  bool score() {
    return loop_(n_chosen_, kRowGrain, [&](int64_t begin, int64_t end, int) {
      for (int64_t j = begin; j < end; ++j) {
        const int32_t i = s_.chosen[j];
        if (j + kRowsAhead < end) members_.prefetch(s_.chosen[j + kRowsAhead]);
        s_.score[i] = members_.dot(s_.direction.data(), i);
        s_.drift_then[i] = drift_;
        s_.keys[j] = sort_key(s_.score[i], i);
      }
    });
  }

  // Those that are `chosen`.
  void assign() {
    if (n_chosen_ == 0) return;
    // As many are left as fit before the cut; if all are, the cut is beyond them.
    const int64_t n_left = p_.n_left - n_sure_;
    const uint64_t cut =
        n_left < n_chosen_ ? nth_key(n_chosen_, n_left, [&](int64_t j) { return s_.keys[j]; }) : UINT64_MAX;
    run_loop(n_chosen_, kGrain, [&](int64_t begin, int64_t end, int) {
      for (int64_t j = begin; j < end; ++j) place(s_.chosen[j], s_.keys[j] < cut);
    });
  }

  void place(int32_t i, int8_t left) {
    s_.change[i] = static_cast<int8_t>(left - s_.left[i]);
    s_.left[i] = left;
  }

  void list_changes() {
    list([&](int64_t i, MemberBlock&) { return s_.change[i] != 0; });
  }

  // sum += rows that came, -= rows that went, of those listed. Worker 0 adds to the sum itself, the others to their
  // own, merged after.
  bool add_changes(std::vector<int64_t>& sum) {
    const auto add = [&](int64_t begin, int64_t end, int worker) {
      PartialSum* part = worker == 0 ? nullptr : &s_.extra[worker - 1];
      int64_t* target = part ? part->sum.data() : sum.data();
      for (int64_t j = begin; j < end; ++j) {
        members_.add(s_.chosen[j], static_cast<float>(s_.change[s_.chosen[j]]) * p_.unit, target);
        if (part) members_.mark(s_.chosen[j], part->marks.data());
      }
      if (part) part->used = true;
    };
    if (!loop_(n_chosen_, kRowGrain, add)) return false;
    if (std::none_of(s_.extra.begin(), s_.extra.end(), [](const PartialSum& part) { return part.used; })) return true;
    const int64_t d = members_.n_features();
    const auto merge = [&](int64_t begin, int64_t end, int) {
      for (PartialSum& part : s_.extra) {
        if (!part.used) continue;
        for (int64_t mark = begin >> PartialSum::kShift; mark << PartialSum::kShift < end; ++mark) {
          if (!std::exchange(part.marks[mark], 0)) continue;
          const int64_t first = mark << PartialSum::kShift, last = std::min(d, (mark + 1) << PartialSum::kShift);
          for (int64_t f = first; f < last; ++f) sum[f] += std::exchange(part.sum[f], 0);
        }
      }
    };
    if (!loop_(d, kFeatureGrain, merge)) return false;
    for (PartialSum& part : s_.extra) part.used = false;
    return true;
  }

  bool update_direction() {
    const int64_t d = members_.n_features();
    double left_scale = 1.0 / static_cast<double>(p_.n_left) / p_.unit;
    double right_scale = 1.0 / static_cast<double>(p_.n - p_.n_left) / p_.unit;
    if (p_.spherical) {
      const auto squares = [&](int64_t begin, int64_t end, int) {
        kernels_.squares(s_.left_sum.data() + begin, s_.total_sum.data() + begin, end - begin,
                         &s_.blocks[2 * (begin / kFeatureGrain)]);
      };
      if (!loop_(d, kFeatureGrain, squares)) return false;
      const double left = sum_blocks(0), right = sum_blocks(1);
      left_scale = left > 0 ? 1 / std::sqrt(left) : 0;
      right_scale = right > 0 ? 1 / std::sqrt(right) : 0;
    }
    const auto direct = [&](int64_t begin, int64_t end, int) {
      s_.blocks[2 * (begin / kFeatureGrain)] =
          kernels_.direct(s_.left_sum.data() + begin, s_.total_sum.data() + begin, end - begin, left_scale, right_scale,
                          s_.direction.data() + begin);
    };
    if (!loop_(d, kFeatureGrain, direct)) return false;
    const float rounding = kRounding * (p_.spherical ? 1 : p_.longest);
    drift_ += p_.longest * (static_cast<float>(std::sqrt(sum_blocks(0))) + rounding);
    return true;
  }

  double sum_blocks(size_t which) const {
    double total = 0;
    for (size_t b = which; b < s_.blocks.size(); b += 2) total += s_.blocks[b];
    return total;
  }

  const Members& members_;
  const TwoMeansParams p_;
  TwoMeansScratch& s_;
  const Loop& loop_;
  const SplitKernels& kernels_;
  bool stopped_ = false;
  int64_t n_chosen_ = 0, n_sure_ = 0;  // listed in `chosen`; members that are on the left for certain
  float drift_ = 0;                    // no score has changed by more than drift_ - drift_then since it was computed
};

}  // namespace lt
