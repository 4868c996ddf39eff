#include "kernels/base/combine.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/base/parallel.h"
#include "kernels/base/topk.h"

namespace lt {

namespace {

constexpr double kMost = std::numeric_limits<float>::max();

struct Vote {
  int32_t id;
  int32_t member;
  double value;
};

// A score as a finite number: an answered label may have -inf, the logarithm of a vanishing product.
double finite(float score) { return std::clamp(static_cast<double>(score), -kMost, kMost); }

// Appends the votes of one member for row i, each its value under the rule over `n_members`. Returns what the member
// counts for labels that it did not answer.
double collect(const Answers& answers, int64_t i, int32_t member, double n_members, CombineRule rule,
               std::vector<Vote>* votes) {
  const int32_t* ids = answers.ids + i * answers.k;
  const float* scores = answers.scores + i * answers.k;
  const double best = answers.k > 0 && ids[0] >= 0 ? finite(scores[0]) : 0;
  double sum = 0, lowest = 0;
  if (rule == CombineRule::kSoftmax) {
    for (int64_t j = 0; j < answers.k; ++j) sum += ids[j] >= 0 ? std::exp(finite(scores[j]) - best) : 0;
  }
  for (int64_t j = 0; j < answers.k; ++j) {
    if (ids[j] < 0) continue;
    double value = finite(scores[j]);
    if (rule == CombineRule::kRank) value = static_cast<double>(answers.k - j) / static_cast<double>(answers.k);
    if (rule == CombineRule::kSoftmax) value = std::exp(value - best) / (sum > 0 ? sum : 1);
    if (rule == CombineRule::kSigmoid) value = 1 / (1 + std::exp(-value));
    value /= n_members;
    if (rule == CombineRule::kMean) lowest = std::min(lowest, value);
    votes->push_back({ids[j], member, value});
  }
  return lowest;
}

}  // namespace

void combine_answers(const std::vector<Answers>& members, int64_t n_rows, CombineRule rule, int64_t k, int n_threads,
                     int32_t* ids, float* scores) {
  const int32_t n_members = static_cast<int32_t>(members.size());
  constexpr int64_t kRowsPerTask = 64;
  parallel_blocks(n_rows, kRowsPerTask, n_threads, [&](int64_t begin, int64_t end, int) {
    std::vector<Vote> votes;
    std::vector<double> lowest(n_members);
    std::vector<Scored> items;
    for (int64_t i = begin; i < end; ++i) {
      votes.clear();
      items.clear();
      double all_lowest = 0;
      for (int32_t m = 0; m < n_members; ++m) {
        lowest[m] = collect(members[m], i, m, n_members, rule, &votes);
        all_lowest += lowest[m];
      }
      // Members in order within a label, so that sums do not depend on how the sort treats equals.
      std::sort(votes.begin(), votes.end(),
                [](const Vote& a, const Vote& b) { return a.id < b.id || (a.id == b.id && a.member < b.member); });
      for (size_t from = 0, to; from < votes.size(); from = to) {
        double total = 0, found = 0;
        for (to = from; to < votes.size() && votes[to].id == votes[from].id; ++to) {
          total += votes[to].value;
          found += lowest[votes[to].member];
        }
        if (static_cast<int32_t>(to - from) < n_members) total += all_lowest - found;
        items.push_back({static_cast<float>(std::clamp(total, -kMost, kMost)), votes[from].id});
      }
      const int64_t kept = keep_topk(items.data(), static_cast<int64_t>(items.size()), k);
      write_topk(items.data(), kept, k, ids + i * k, scores + i * k);
    }
  });
}

}  // namespace lt
