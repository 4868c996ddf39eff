#include "kernels/base/synthetic.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/base/counter_random.h"

namespace lt {

namespace {

constexpr int64_t kMadeRowsPerTask = 1024;

RandomStream row_stream(uint64_t seed, RowPurpose purpose, int64_t row) {
  return {seed, static_cast<uint64_t>(purpose), static_cast<uint64_t>(row)};
}

// A rank from 0 to n - 1 with probability falling as 1 / (rank + 1).
uint32_t zipf(RandomStream& random, double log_n_plus_1, uint32_t n) {
  const auto rank = static_cast<uint32_t>(std::exp(random.uniform() * log_n_plus_1)) - 1;
  return std::min(rank, n - 1);
}

// One row's labels: at most a few hundred, so that looking through them beats any table.
class LabelRow {
 public:
  LabelRow(const LabelPlan& plan, int32_t* out, int64_t size) : plan_(plan), out_(out), size_(size) {}

  bool full() const { return used_ == size_; }
  bool add(int32_t label) {
    if (std::find(out_, out_ + used_, label) != out_ + used_) return false;
    out_[used_++] = label;
    return true;
  }
  // A label between the positions begin and end of plan.order, by weight.
  bool draw(RandomStream& random, int64_t begin, int64_t end) {
    if (begin == end) return false;
    const double low = plan_.cumulative[begin], high = plan_.cumulative[end];
    const double* found =
        std::upper_bound(plan_.cumulative + begin + 1, plan_.cumulative + end, low + random.uniform() * (high - low));
    return add(plan_.order[found - plan_.cumulative - 1]);
  }
  void finish() { std::sort(out_, out_ + size_); }

 private:
  const LabelPlan& plan_;
  int32_t* out_;
  int64_t size_, used_ = 0;
};

void fill_labels(const LabelPlan& plan, int64_t row, int32_t* out, int64_t size) {
  const int32_t topic = plan.row_topic[row];
  const int64_t begin = plan.topic_begin[topic], end = plan.topic_begin[topic + 1];
  LabelRow labels(plan, out, size);
  if (plan.row_rank) {
    for (int64_t p = begin + plan.row_rank[row]; p < end; p += plan.topic_rows[topic]) {
      if (labels.full()) throw std::invalid_argument("row " + std::to_string(row) + " has no room for its labels");
      labels.add(plan.order[p]);
    }
  }
  RandomStream random = row_stream(plan.seed, RowPurpose::kLabels, plan.first_row + row);
  for (int64_t tries = 8 * size + 64; !labels.full() && tries > 0; --tries) {
    if (random.uniform() < plan.general)
      labels.draw(random, 0, plan.topic_begin[0]);
    else if (random.uniform() < plan.coherence)
      labels.draw(random, begin, end);
    else
      labels.draw(random, plan.topic_begin[0], plan.n_labels);
  }
  // A row that wants most of the labels there are: take the rest in turn.
  for (int64_t p = random.below(static_cast<uint32_t>(plan.n_labels)); !labels.full(); ++p)
    labels.add(plan.order[p % plan.n_labels]);
  labels.finish();
}

// Words of one row with their counts: an open-addressing table, twice as large as it needs to be.
class WordCounts {
 public:
  void reset(int64_t size) {
    size_t capacity = 16;
    while (capacity < static_cast<size_t>(2 * size)) capacity *= 2;
    slots_.assign(capacity, {-1, 0});
    used_ = 0;
  }
  int64_t size() const { return used_; }
  void add(int32_t word) {
    const size_t mask = slots_.size() - 1;
    size_t slot = mix64(static_cast<uint64_t>(word)) & mask;
    while (slots_[slot].word >= 0 && slots_[slot].word != word) slot = (slot + 1) & mask;
    if (slots_[slot].word < 0) {
      slots_[slot].word = word;
      ++used_;
    }
    ++slots_[slot].count;
  }
  void write(int32_t* words, float* counts) {
    slots_.erase(std::remove_if(slots_.begin(), slots_.end(), [](const Slot& slot) { return slot.word < 0; }),
                 slots_.end());
    std::sort(slots_.begin(), slots_.end(), [](const Slot& a, const Slot& b) { return a.word < b.word; });
    for (int64_t i = 0; i < used_; ++i) {
      words[i] = slots_[i].word;
      counts[i] = static_cast<float>(slots_[i].count);
    }
  }

 private:
  struct Slot {
    int32_t word;
    int32_t count;
  };
  std::vector<Slot> slots_;
  int64_t used_ = 0;
};

class TopicVocabulary {
 public:
  explicit TopicVocabulary(const FeaturePlan& plan)
      : plan_(plan),
        size_(static_cast<uint32_t>(plan.n_features)),
        log_size_(std::log(plan.n_features + 1.0)),
        log_lexicon_(std::log(plan.lexicon + 1.0)) {}

  // Frequent words have scattered ids, as in a vocabulary in alphabetical order: multiplication by a number without a
  // common factor is a permutation.
  int32_t background(RandomStream& random) const {
    const uint64_t rank = zipf(random, log_size_, size_);
    return static_cast<int32_t>((rank * 2654435761ull + plan_.seed % size_) % size_);
  }
  int32_t of_topic(RandomStream& random, int32_t topic) const {
    return lexicon(topic, zipf(random, log_lexicon_, static_cast<uint32_t>(plan_.lexicon)));
  }
  int32_t of_label(RandomStream& random, int32_t label) const {
    const uint32_t j = random.below(static_cast<uint32_t>(plan_.signature));
    if (4 * j < plan_.signature) return hashed(RowPurpose::kOwnWord, label, j);
    const uint64_t bits = hash64(plan_.seed ^ static_cast<uint64_t>(RowPurpose::kSignature), label, j);
    return lexicon(plan_.label_topic[label], reduce(bits, static_cast<uint32_t>(plan_.lexicon)));
  }

 private:
  int32_t lexicon(int32_t topic, uint32_t j) const { return hashed(RowPurpose::kLexicon, topic, j); }
  int32_t hashed(RowPurpose purpose, int32_t a, uint32_t b) const {
    const uint64_t seed = plan_.seed ^ (static_cast<uint64_t>(purpose) << 32);
    return static_cast<int32_t>(reduce(hash64(seed, static_cast<uint64_t>(a), b), size_));
  }

  const FeaturePlan& plan_;
  uint32_t size_;
  double log_size_, log_lexicon_;
};

}  // namespace

void synthetic_sizes(const RowSizes& sizes, int64_t n_rows, int n_threads, int64_t* out) {
  const double rate = std::max(0.0, sizes.mean - static_cast<double>(sizes.minimum));
  parallel_blocks(n_rows, kMadeRowsPerTask, n_threads, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      RandomStream random = row_stream(sizes.seed, sizes.purpose, sizes.first_row + i);
      const double factor = std::exp(sizes.spread * random.normal() - 0.5 * sizes.spread * sizes.spread);
      out[i] = std::min(sizes.minimum + random.poisson(rate * factor), sizes.maximum);
    }
  });
}

void synthetic_labels(const LabelPlan& plan, int64_t n_rows, const int64_t* indptr, int n_threads, int32_t* labels,
                      const Poll& poll) {
  parallel_blocks(
      n_rows, kMadeRowsPerTask, n_threads,
      [&](int64_t begin, int64_t end, int) {
        for (int64_t i = begin; i < end; ++i) {
          const int64_t size = indptr[i + 1] - indptr[i];
          if (size > plan.n_labels) throw std::invalid_argument("a row wants more labels than there are");
          fill_labels(plan, i, labels + indptr[i], size);
        }
      },
      poll);
}

void synthetic_features(const FeaturePlan& plan, const CsrView& labels, const int64_t* indptr, int n_threads,
                        int32_t* words, float* values, const Poll& poll) {
  const TopicVocabulary vocabulary(plan);
  parallel_blocks(
      labels.n_rows, kMadeRowsPerTask, n_threads,
      [&](int64_t begin, int64_t end, int) {
        WordCounts counts;
        for (int64_t i = begin; i < end; ++i) {
          const int64_t size = indptr[i + 1] - indptr[i];
          if (size > plan.n_features) throw std::invalid_argument("a row wants more features than there are");
          const int32_t* own = labels.indices + labels.begin(i);
          const auto n_own = static_cast<uint32_t>(labels.row_nnz(i));
          RandomStream random = row_stream(plan.seed, RowPurpose::kFeatures, plan.first_row + i);
          counts.reset(size);
          for (int64_t tries = 8 * size + 64; counts.size() < size && tries > 0; --tries) {
            const double kind = random.uniform();
            if (kind < plan.noise || n_own == 0)
              counts.add(vocabulary.background(random));
            else if (kind < plan.noise + plan.topical)
              counts.add(vocabulary.of_topic(random, plan.row_topic[i]));
            else
              counts.add(vocabulary.of_label(random, own[random.below(n_own)]));
          }
          // A row that wants most of the vocabulary: take the rest in turn.
          for (int64_t w = random.below(static_cast<uint32_t>(plan.n_features)); counts.size() < size; ++w)
            counts.add(static_cast<int32_t>(w % plan.n_features));
          counts.write(words + indptr[i], values + indptr[i]);
        }
      },
      poll);
}

void synthetic_weigh(int64_t n_rows, const int64_t* indptr, const int32_t* words, const float* idf, int n_threads,
                     float* values) {
  parallel_blocks(n_rows, kMadeRowsPerTask, n_threads, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      double squares = 0.0;
      for (int64_t p = indptr[i]; p < indptr[i + 1]; ++p) {
        values[p] = (1.0f + std::log(values[p])) * idf[words[p]];
        squares += static_cast<double>(values[p]) * values[p];
      }
      const auto scale = static_cast<float>(squares > 0 ? 1.0 / std::sqrt(squares) : 0.0);
      for (int64_t p = indptr[i]; p < indptr[i + 1]; ++p) values[p] *= scale;
    }
  });
}

}  // namespace lt
