#include "kernels/text/tfidf_shards.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <queue>
#include <stdexcept>
#include <string_view>

namespace lt {

namespace {

constexpr int64_t kPollEvery = 1 << 18;  // terms

struct Sum {
  uint64_t n_texts = 0, n_times = 0;
};

// Calls visit(key, sum) for every different key of all shards, in ascending order; key(shard, i) is that of a term.
template <class Key, class KeyOf, class Visit>
void each_term(const std::vector<TermCounts>& shards, const Poll& poll, KeyOf&& key, Visit&& visit) {
  struct Head {
    Key key;
    uint32_t shard;
    bool operator<(const Head& other) const { return other.key < key; }  // the smallest is on top
  };
  std::vector<int64_t> at(shards.size());
  std::priority_queue<Head> heads;
  int64_t done = 0, total = 0;
  for (uint32_t s = 0; s < shards.size(); ++s) {
    total += shards[s].n;
    if (shards[s].n) heads.push({key(shards[s], 0), s});
  }
  while (!heads.empty()) {
    const Key smallest = heads.top().key;
    Sum sum;
    while (!heads.empty() && heads.top().key == smallest) {
      const uint32_t s = heads.top().shard;
      const TermCounts& shard = shards[s];
      heads.pop();
      sum.n_texts += shard.n_texts[at[s]];
      if (shard.n_times) sum.n_times += shard.n_times[at[s]];
      if (++at[s] < shard.n) {
        const Key next = key(shard, at[s]);
        if (!(smallest < next)) throw std::invalid_argument("the terms of a shard must ascend");
        heads.push({next, s});
      }
      if (++done % kPollEvery == 0 && poll && !poll(done, total)) throw std::runtime_error("stopped");
    }
    visit(smallest, sum);
  }
}

bool keeps(const Pruning& pruning, uint64_t n_texts) {
  const double with = static_cast<double>(n_texts);
  return n_texts > 0 && with >= pruning.min_texts && with <= pruning.max_texts;
}

// Keeps the terms that occur most often; ties go to the first in order.
void keep_most_frequent(const std::vector<uint64_t>& times, int64_t max_terms, TfidfFit& out) {
  std::vector<uint32_t> kept(out.weights.size());
  std::iota(kept.begin(), kept.end(), 0u);
  std::nth_element(kept.begin(), kept.begin() + max_terms, kept.end(),
                   [&](uint32_t a, uint32_t b) { return times[a] != times[b] ? times[a] > times[b] : a < b; });
  kept.resize(max_terms);
  std::sort(kept.begin(), kept.end());
  int64_t end = 0;
  for (int64_t i = 0; i < max_terms; ++i) {  // to the front, in place
    const int64_t begin = out.term_offsets[kept[i]], length = out.term_offsets[kept[i] + 1] - begin;
    std::memmove(out.term_bytes.data() + end, out.term_bytes.data() + begin, length);
    out.weights[i] = out.weights[kept[i]];
    out.term_offsets[i] = end;
    end += length;
  }
  out.term_offsets[max_terms] = end;
  out.term_offsets.resize(max_terms + 1);
  out.term_bytes.resize(end);
  out.weights.resize(max_terms);
}

}  // namespace

TfidfFit merge_counts(const std::vector<TermCounts>& shards, int64_t n_texts, const TfidfFitOptions& fit,
                      const Poll& poll) {
  const double all = static_cast<double>(n_texts);
  TfidfFit out;
  if (fit.n_features) {
    const auto weigh = [&](uint64_t with) {
      const double texts = static_cast<double>(with);
      const bool stays = texts >= fit.pruning.min_texts && texts <= fit.pruning.max_texts;
      return stays ? fit.weight(texts, all) : 0;
    };
    out.others = weigh(0);
    each_term<int32_t>(
        shards, poll, [](const TermCounts& shard, int64_t i) { return shard.columns[i]; },
        [&](int32_t column, const Sum& sum) {
          ++out.n_seen;
          const float own = weigh(sum.n_texts);
          if (own == out.others) return;
          out.columns.push_back(column);
          out.weights.push_back(own);
        });
    return out;
  }
  const bool by_times = fit.pruning.max_terms >= 0 && !fit.weighting.binary;
  for (const TermCounts& shard : shards)
    if (by_times && shard.n && !shard.n_times)
      throw std::invalid_argument("a shard does not say how often terms occur");
  std::vector<uint64_t> times;
  out.term_offsets.push_back(0);
  each_term<std::string_view>(
      shards, poll,
      [](const TermCounts& shard, int64_t i) {
        const int64_t* at = shard.terms.offsets + i;
        return std::string_view(reinterpret_cast<const char*>(shard.terms.bytes) + at[0], at[1] - at[0]);
      },
      [&](std::string_view term, const Sum& sum) {
        ++out.n_seen;
        if (!keeps(fit.pruning, sum.n_texts)) return;
        if (out.weights.size() == INT32_MAX)
          throw std::length_error("more than 2^31 - 1 terms: raise min_df or set max_features");
        out.term_bytes.insert(out.term_bytes.end(), term.begin(), term.end());
        out.term_offsets.push_back(static_cast<int64_t>(out.term_bytes.size()));
        out.weights.push_back(fit.weight(static_cast<double>(sum.n_texts), all));
        if (fit.pruning.max_terms >= 0) times.push_back(by_times ? sum.n_times : sum.n_texts);
      });
  if (fit.pruning.max_terms >= 0 && fit.pruning.max_terms < static_cast<int64_t>(out.weights.size()))
    keep_most_frequent(times, fit.pruning.max_terms, out);
  return out;
}

}  // namespace lt
