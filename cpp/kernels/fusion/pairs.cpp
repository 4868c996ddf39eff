#include "kernels/fusion/pairs.h"

#include <algorithm>
#include <cmath>

#include "kernels/base/parallel.h"
#include "kernels/base/topk.h"

namespace lt {

namespace {

constexpr int64_t kFusedRowsPerTask = 16;

}  // namespace

void RowPairs::collect(const std::vector<Answers>& sources, int64_t row, const float* log_counts) {
  const int64_t n_sources = static_cast<int64_t>(sources.size()), width = n_pair_features(n_sources);
  places_.clear();
  ids.clear();
  features.clear();
  for (int64_t s = 0; s < n_sources; ++s) {
    const Answers& source = sources[s];
    for (int64_t j = 0; j < source.k; ++j) {
      const int32_t id = source.ids[row * source.k + j];
      if (id >= 0)
        places_.push_back(
            {id, static_cast<int32_t>(s), static_cast<int32_t>(j + 1), source.scores[row * source.k + j]});
    }
  }
  std::sort(places_.begin(), places_.end(),
            [](const Place& a, const Place& b) { return a.id < b.id || (a.id == b.id && a.source < b.source); });
  for (size_t from = 0, to; from < places_.size(); from = to) {
    const int32_t id = places_[from].id;
    ids.push_back(id);
    features.resize(features.size() + width);
    float* x = features.data() + features.size() - width;
    for (int64_t s = 0; s < n_sources; ++s) {
      const Answers& source = sources[s];
      const float best = source.k > 0 && source.ids[row * source.k] >= 0 ? source.scores[row * source.k] : 0;
      float* own = x + kPerSource * s;
      own[0] = own[2] = own[4] = 0;
      own[1] = -best;
      own[3] = std::log(static_cast<float>(source.k + 1));
    }
    double values = 0, inverse_ranks = 0;
    float greatest = 0;
    for (to = from; to < places_.size() && places_[to].id == id; ++to) {
      const Place& place = places_[to];
      float* own = x + kPerSource * place.source;
      own[0] = place.value;
      own[1] += place.value;
      own[2] = 1 / static_cast<float>(place.rank);
      own[3] = std::log(static_cast<float>(place.rank));
      own[4] = 1;
      values += place.value;
      inverse_ranks += own[2];
      greatest = std::max(greatest, place.value);
    }
    float* over = x + kPerSource * n_sources;
    over[0] = static_cast<float>(to - from);
    over[1] = static_cast<float>(values / static_cast<double>(n_sources));
    over[2] = greatest;
    over[3] = static_cast<float>(inverse_ranks / static_cast<double>(n_sources));
    over[4] = log_counts[id];
  }
}

Pairs collect_pairs(const std::vector<Answers>& sources, int64_t n_rows, const float* log_counts, int n_threads) {
  const int64_t width = n_pair_features(static_cast<int64_t>(sources.size()));
  std::vector<RowPairs> rows(n_rows);
  parallel_blocks(n_rows, kFusedRowsPerTask, n_threads, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) rows[i].collect(sources, i, log_counts);
  });
  Pairs out;
  out.offsets.push_back(0);
  for (const RowPairs& row : rows) out.offsets.push_back(out.offsets.back() + static_cast<int64_t>(row.ids.size()));
  out.ids.reserve(out.offsets.back());
  out.features.reserve(out.offsets.back() * width);
  for (const RowPairs& row : rows) {
    out.ids.insert(out.ids.end(), row.ids.begin(), row.ids.end());
    out.features.insert(out.features.end(), row.features.begin(), row.features.end());
  }
  return out;
}

void fuse_answers(const std::vector<Answers>& sources, int64_t n_rows, const float* log_counts, const TreeArrays& trees,
                  int64_t k, int n_threads, int32_t* ids, float* scores) {
  const int64_t width = n_pair_features(static_cast<int64_t>(sources.size()));
  parallel_blocks(n_rows, kFusedRowsPerTask, n_threads, [&](int64_t begin, int64_t end, int) {
    RowPairs row;
    std::vector<Scored> items;
    for (int64_t i = begin; i < end; ++i) {
      row.collect(sources, i, log_counts);
      items.clear();
      for (size_t j = 0; j < row.ids.size(); ++j) {
        const double score = trees.score(row.features.data() + static_cast<int64_t>(j) * width);
        items.push_back({static_cast<float>(1 / (1 + std::exp(-score))), row.ids[j]});
      }
      const int64_t kept = keep_topk(items.data(), static_cast<int64_t>(items.size()), k);
      write_topk(items.data(), kept, k, ids + i * k, scores + i * k);
    }
  });
}

}  // namespace lt
