#include "kernels/codes/bucket_decode.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/base/best_k.h"
#include "kernels/codes/murmur.h"

namespace lt {

namespace {

constexpr int64_t kDecodesPerTask = 64;
constexpr int64_t kScanBlock = 512;   // labels between two looks at the hits
constexpr int64_t kBoundBuckets = 8;  // buckets per repetition that the lower bound is taken from
constexpr int64_t kPrunedShare = 16;  // prune if at most one label in so many has to be scored

struct alignas(64) Lane {
  float value[16];
};

struct alignas(64) Steps {
  uint8_t value[64];
};

// How the values of a query are rounded up: value <= low[r] + step * steps, but for `loss` steps in R of them.
struct Rounding {
  const float* values = nullptr;
  float low[kMostSteps];
  float inverse = 1;  // 1 / step
  double sum_low = 0, loss = 0;
  float slack = 0;

  // Values that are no number, or too far apart for one, get the most steps: they are looked at once more.
  uint8_t step_of(float value, float least) const {
    const float steps = (value - least) * inverse + 0.9999f;
    if (!(steps < 256.0f)) return 255;
    return steps > 0 ? static_cast<uint8_t>(steps) : 0;
  }

  // The least sum of steps that an aggregate of `least` can have.
  uint16_t steps_for(float least) const {
    const double wanted = (least - sum_low) * inverse - loss;
    return wanted > 0 ? static_cast<uint16_t>(std::min(std::floor(wanted), 65535.0)) : 0;  // NaN: no bound
  }
};

struct DecodeWorker {
  std::vector<float> values;     // (queries of a task, R * B): linked
  std::vector<Scored> order;     // buckets of a repetition
  std::vector<uint16_t> counts;  // (L), zero between queries
  std::vector<float> sums;       // (L), zero between queries; only for partial scores
  std::vector<int32_t> touched;  // labels whose count is not zero
  std::vector<BestK> best;       // one per query of a task
  std::vector<Lane> lanes;       // (R * B) values of 16 queries
  std::vector<uint16_t> hits;    // (kScanBlock)
  std::vector<Steps> steps;      // (R * B) rounded values of 64 queries
  std::vector<uint64_t> wide;    // (kScanBlock) hits of 64 queries
  std::vector<Rounding> rounding;
  std::vector<int64_t> to_scan;  // queries of the task
  std::vector<float> middle;     // (R)
};

class Decoder {
 public:
  Decoder(const BucketCode& code, const BucketMembers& members, const DecodeParams& params, int64_t k)
      : code_(code),
        members_(members),
        params_(params),
        k_(k),
        R_(code.n_repetitions),
        B_(code.n_buckets),
        kernels_(LT_DISPATCH(bucket_kernels)) {}

  void run(const MatrixView<const float>& scores, int64_t begin, int64_t end, DecodeWorker& w, int32_t* ids,
           float* out) {
    w.values.resize((end - begin) * R_ * B_);
    w.counts.resize(code_.n_labels);
    w.middle.resize(R_);
    w.best.resize(std::max<size_t>(w.best.size(), end - begin));
    w.to_scan.clear();
    for (int64_t q = begin; q < end; ++q) {
      float* values = w.values.data() + (q - begin) * R_ * B_;
      link(scores.row(q), values);
      BestK& best = w.best[q - begin];
      best.reset(k_);
      if (!params_.exact)
        candidates(values, params_.top_buckets, params_.least_hits, params_.partial, w, best);
      else if (!params_.allow_pruning || !pruned(values, w, best))
        w.to_scan.push_back(q - begin);
    }
    size_t scanned = 0;
    if (params_.aggregation == Aggregation::sum && R_ <= kMostSteps) {
      const auto bounded = [&](int64_t q) { return finite(w.values.data() + q * R_ * B_); };
      const auto rest = std::stable_partition(w.to_scan.begin(), w.to_scan.end(), bounded);
      scanned = static_cast<size_t>(rest - w.to_scan.begin());
      if (scanned > 16)
        scan_steps(w, scanned);
      else
        scanned = 0;  // few queries: floats do as well
    }
    for (size_t i = scanned; i < w.to_scan.size(); i += 16) scan(w, i, std::min<size_t>(16, w.to_scan.size() - i));
    for (int64_t q = begin; q < end; ++q) {
      w.best[q - begin].write(ids + q * k_, out + q * k_);
    }
  }

 private:
  void link(const float* raw, float* values) const {
    if (params_.link != Link::softmax) {
      kernels_.link(raw, R_ * B_, params_.link, 0, values);
      return;
    }
    for (int64_t r = 0; r < R_; ++r) {
      const float* from = raw + r * B_;
      float* to = values + r * B_;
      kernels_.link(from, B_, Link::softmax, *std::max_element(from, from + B_), to);
      double total = 0;
      for (int64_t b = 0; b < B_; ++b) total += to[b];
      const float inverse = static_cast<float>(1 / total);
      for (int64_t b = 0; b < B_; ++b) to[b] *= inverse;
    }
  }

  // The one definition of a label's score.
  float score(const float* values, int32_t label, DecodeWorker& w) const {
    const int32_t* buckets = code_.table + static_cast<int64_t>(label) * R_;
    float x = values[buckets[0]];
    if (params_.aggregation == Aggregation::sum) {
      for (int64_t r = 1; r < R_; ++r) x += values[r * B_ + buckets[r]];
    } else if (params_.aggregation == Aggregation::min) {
      for (int64_t r = 1; r < R_; ++r) x = std::min(x, values[r * B_ + buckets[r]]);
    } else {
      for (int64_t r = 0; r < R_; ++r) w.middle[r] = values[r * B_ + buckets[r]];
      std::sort(w.middle.begin(), w.middle.end(), std::greater<float>());
      x = R_ % 2 ? w.middle[R_ / 2] : (w.middle[R_ / 2 - 1] + w.middle[R_ / 2]) * 0.5f;
    }
    return x * params_.scale + params_.offset;
  }

  // How far rounding can take an aggregate of these values from its exact value.
  float slack(const float* values) const {
    float largest = 0;
    for (int64_t i = 0; i < R_ * B_; ++i) largest = std::max(largest, std::fabs(values[i]));
    const float terms = params_.aggregation == Aggregation::sum ? static_cast<float>(R_) : 1.0f;
    return 4e-7f * terms * (terms * largest + std::fabs(params_.offset / params_.scale));
  }

  // The value that the aggregate must reach for the score to reach `threshold`, rounded down.
  float least_aggregate(float threshold, float slack) const {
    const float least = (threshold - params_.offset) / params_.scale - slack;
    return std::isnan(least) ? -kInf : least;  // infinite values: everything may be among the best
  }

  const int32_t* begin(int64_t r, int64_t bucket) const {
    return members_.labels.data() + r * code_.n_labels + members_.starts[r * (B_ + 1) + bucket];
  }
  const int32_t* end(int64_t r, int64_t bucket) const { return begin(r, bucket + 1); }

  // Labels in the `top` best buckets of at least `least` repetitions, or of fewer where that names less than k.
  void candidates(const float* values, int64_t top, int64_t least, bool partial, DecodeWorker& w, BestK& best) const {
    top = std::min(top, B_);
    w.touched.clear();
    if (partial) w.sums.resize(code_.n_labels);
    for (int64_t r = 0; r < R_; ++r) {
      w.order.resize(B_);
      for (int64_t b = 0; b < B_; ++b) w.order[b] = {values[r * B_ + b], static_cast<int32_t>(b)};
      if (top < B_) std::nth_element(w.order.begin(), w.order.begin() + top, w.order.end(), ranks_before);
      for (int64_t j = 0; j < top; ++j) {
        const Scored& bucket = w.order[j];
        for (const int32_t* label = begin(r, bucket.id); label < end(r, bucket.id); ++label) {
          if (w.counts[*label]++ == 0) w.touched.push_back(*label);
          if (partial) w.sums[*label] += bucket.score;
        }
      }
    }
    std::vector<int64_t> named(R_ + 1);  // labels by how many repetitions name them
    for (const int32_t label : w.touched) ++named[w.counts[label]];
    int64_t hits = R_, total = named[R_];
    while (hits > 1 && (hits > least || total < k_)) total += named[--hits];
    for (const int32_t label : w.touched) {
      if (w.counts[label] >= hits)
        best.push(partial ? w.sums[label] * params_.scale + params_.offset : score(values, label, w), label);
      w.counts[label] = 0;
      if (partial) w.sums[label] = 0;
    }
  }

  // Finds the k best through the buckets that can hold them. False if those hold too many labels.
  bool pruned(const float* values, DecodeWorker& w, BestK& best) const {
    candidates(values, kBoundBuckets, std::max<int64_t>(2, R_ / 4), false, w, best);
    const bool enough = static_cast<int64_t>(best.items.size()) >= k_;
    const int64_t kept = best.finish();
    const float bound = enough ? best.items[kept - 1].score : -kInf;
    best.reset(k_, bound);
    if (!enough) return false;
    const float aggregate = least_aggregate(bound, slack(values));
    const float least = params_.aggregation == Aggregation::sum ? aggregate / static_cast<float>(R_) : aggregate;

    // A label must reach `least` in `needed` repetitions, so that it is named by one of any R - needed + 1.
    const int64_t needed = params_.aggregation == Aggregation::min      ? R_
                           : params_.aggregation == Aggregation::median ? (R_ + 1) / 2
                                                                        : 1;
    std::vector<std::pair<int64_t, int64_t>> cost(R_);  // members of the buckets that reach it
    for (int64_t r = 0; r < R_; ++r) {
      cost[r] = {0, r};
      const int64_t* starts = members_.starts.data() + r * (B_ + 1);
      for (int64_t b = 0; b < B_; ++b)
        if (values[r * B_ + b] >= least) cost[r].first += starts[b + 1] - starts[b];
    }
    std::sort(cost.begin(), cost.end());
    int64_t total = 0;
    for (int64_t i = 0; i <= R_ - needed; ++i) total += cost[i].first;
    if (total * kPrunedShare > code_.n_labels) return false;

    w.touched.clear();
    for (int64_t i = 0; i <= R_ - needed; ++i) {
      const int64_t r = cost[i].second;
      for (int64_t b = 0; b < B_; ++b) {
        if (!(values[r * B_ + b] >= least)) continue;
        for (const int32_t* label = begin(r, b); label < end(r, b); ++label) {
          if (w.counts[*label]) continue;
          w.counts[*label] = 1;
          w.touched.push_back(*label);
          best.push(score(values, *label, w), *label);
        }
      }
    }
    for (const int32_t label : w.touched) w.counts[label] = 0;
    return true;
  }

  // All labels, for queries to_scan[first .. first + width) of the task side by side.
  void scan(DecodeWorker& w, size_t first, size_t width) const {
    w.lanes.resize(R_ * B_);
    w.hits.resize(kScanBlock);
    const float* values[16];
    float least[16], slacks[16];
    for (size_t lane = 0; lane < 16; ++lane) {
      const int64_t q = w.to_scan[first + std::min(lane, width - 1)];
      values[lane] = w.values.data() + q * R_ * B_;
      slacks[lane] = slack(values[lane]);
      least[lane] = lane < width ? least_aggregate(w.best[q].threshold, slacks[lane]) : kInf;
    }
    const unsigned mine = (1u << width) - 1;  // an infinite value reaches any limit, also in a lane that is no query's
    for (int64_t i = 0; i < R_ * B_; ++i)
      for (size_t lane = 0; lane < 16; ++lane) w.lanes[i].value[lane] = values[lane][i];
    for (int64_t begin = 0; begin < code_.n_labels; begin += kScanBlock) {
      const int64_t n = std::min(kScanBlock, code_.n_labels - begin);
      kernels_.scan(w.lanes[0].value, code_.table + begin * R_, n, R_, B_, params_.aggregation, least, w.hits.data());
      for (int64_t i = 0; i < n; ++i)
        for (unsigned left = w.hits[i] & mine; left; left &= left - 1) {
          const int lane = __builtin_ctz(left);
          BestK& best = w.best[w.to_scan[first + lane]];
          const float before = best.threshold;
          const int32_t label = static_cast<int32_t>(begin + i);
          best.push(score(values[lane], label, w), label);
          if (best.threshold != before) least[lane] = least_aggregate(best.threshold, slacks[lane]);
        }
    }
  }

  bool finite(const float* values) const {
    float sum = 0;  // NaN as soon as one of them is not finite
    for (int64_t i = 0; i < R_ * B_; ++i) sum += values[i] * 0.0f;
    return sum == 0;
  }

  Rounding rounding(const float* values) const {
    Rounding out;
    out.values = values;
    out.slack = slack(values);
    out.loss = 3e-4 * static_cast<double>(R_);
    float widest = 0;
    for (int64_t r = 0; r < R_; ++r) {
      const auto [least, most] = std::minmax_element(values + r * B_, values + (r + 1) * B_);
      out.low[r] = *least;
      out.sum_low += *least;
      widest = std::max(widest, *most - *least);
    }
    if (widest > 0) out.inverse = std::min(254.99f / widest, std::numeric_limits<float>::max());
    return out;
  }

  // All labels, for the first `width` queries to scan (at most 64) side by side.
  void scan_steps(DecodeWorker& w, size_t width) const {
    w.steps.resize(R_ * B_);
    w.wide.resize(kScanBlock);
    w.rounding.resize(width);
    uint16_t least[64] = {};
    const auto limit = [&](size_t lane) {
      const float threshold = w.best[w.to_scan[lane]].threshold;
      const Rounding& how = w.rounding[lane];
      return threshold == -kInf ? uint16_t{0} : how.steps_for(least_aggregate(threshold, how.slack));
    };
    for (size_t lane = 0; lane < width; ++lane) {
      w.rounding[lane] = rounding(w.values.data() + w.to_scan[lane] * R_ * B_);
      least[lane] = limit(lane);
    }
    for (int64_t r = 0; r < R_; ++r)
      for (int64_t first = 0; first < B_; first += 64)  // a tile that stays in the cache
        for (size_t lane = 0; lane < width; ++lane) {
          const Rounding& how = w.rounding[lane];
          for (int64_t i = r * B_ + first, end = r * B_ + std::min(first + 64, B_); i < end; ++i)
            w.steps[i].value[lane] = how.step_of(how.values[i], how.low[r]);
        }
    const uint64_t mine = width == 64 ? ~uint64_t{0} : (uint64_t{1} << width) - 1;
    for (int64_t begin = 0; begin < code_.n_labels; begin += kScanBlock) {
      const int64_t n = std::min(kScanBlock, code_.n_labels - begin);
      kernels_.scan_steps(w.steps[0].value, code_.table + begin * R_, n, R_, B_, least, w.wide.data());
      for (int64_t i = 0; i < n; ++i)
        for (uint64_t left = w.wide[i] & mine; left; left &= left - 1) {
          const int lane = __builtin_ctzll(left);
          BestK& best = w.best[w.to_scan[lane]];
          const float before = best.threshold;
          const int32_t label = static_cast<int32_t>(begin + i);
          best.push(score(w.rounding[lane].values, label, w), label);
          if (best.threshold != before) least[lane] = limit(lane);
        }
    }
  }

  const BucketCode& code_;
  const BucketMembers& members_;
  const DecodeParams& params_;
  const int64_t k_, R_, B_;
  const BucketKernels& kernels_;
};

}  // namespace

void hash_labels(int64_t first, int64_t count, const uint32_t* seeds, int64_t n_repetitions, int64_t n_buckets,
                 int n_threads, int32_t* table) {
  parallel_blocks(count, 1 << 14, n_threads, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i)
      for (int64_t r = 0; r < n_repetitions; ++r)
        table[i * n_repetitions + r] = static_cast<int32_t>(murmur3(static_cast<uint32_t>(first + i), seeds[r]) %
                                                            static_cast<uint32_t>(n_buckets));
  });
}

BucketMembers bucket_members(const BucketCode& code, int n_threads) {
  const int64_t L = code.n_labels, R = code.n_repetitions, B = code.n_buckets;
  BucketMembers out;
  out.starts.resize(R * (B + 1));
  out.labels.resize(R * L);
  parallel_for(R, n_threads, [&](int64_t r, int) {
    int64_t* starts = out.starts.data() + r * (B + 1);
    for (int64_t i = 0; i < L; ++i) ++starts[code.table[i * R + r] + 1];
    for (int64_t b = 0; b < B; ++b) starts[b + 1] += starts[b];
    std::vector<int64_t> next(starts, starts + B);
    for (int64_t i = 0; i < L; ++i) out.labels[r * L + next[code.table[i * R + r]]++] = static_cast<int32_t>(i);
  });
  return out;
}

bool decode_buckets(const BucketCode& code, const BucketMembers& members, const MatrixView<const float>& scores,
                    const DecodeParams& params, int64_t k, int n_threads, int32_t* ids, float* out, const Poll& poll) {
  const int64_t n_tasks = (scores.n_rows + kDecodesPerTask - 1) / kDecodesPerTask;
  std::vector<DecodeWorker> workers(std::max<int64_t>(1, std::min<int64_t>(n_threads, n_tasks)));
  Decoder decoder(code, members, params, k);
  return parallel_blocks(
      scores.n_rows, kDecodesPerTask, n_threads,
      [&](int64_t begin, int64_t end, int worker) { decoder.run(scores, begin, end, workers[worker], ids, out); },
      poll);
}

}  // namespace lt
