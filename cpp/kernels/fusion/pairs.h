// Candidates of several sources, what is known of each pair of row and candidate, and the best under a learned score.
//
// Features of a pair, in this order, all float32:
//
//   for each source   value of the label, value less the best of the row, 1 / rank, log(rank), whether it was answered
//   over the sources  how many answered it, mean of the values, greatest value, mean of 1 / rank
//   of the label      log(1 + training rows)
//
// Ranks count from 1. A source that did not answer the label has the value 0 and the rank k + 1, of which 1 / rank is
// taken as 0.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/base/combine.h"
#include "kernels/fusion/boosted_trees.h"

namespace lt {

constexpr int64_t kPerSource = 5;
constexpr int64_t kOverSources = 4;

constexpr int64_t n_pair_features(int64_t n_sources) { return kPerSource * n_sources + kOverSources + 1; }

// What there is to know of the candidates of one row.
struct RowPairs {
  std::vector<int32_t> ids;  // ascending
  std::vector<float> features;

  void collect(const std::vector<Answers>& sources, int64_t row, const float* log_counts);

 private:
  struct Place {
    int32_t id, source, rank;
    float value;
  };
  std::vector<Place> places_;
};

// Candidates of every row as offsets (n_rows + 1,), ids and features of all of them.
struct Pairs {
  std::vector<int64_t> offsets;
  std::vector<int32_t> ids;
  std::vector<float> features;
};

// log_counts (L,) of the labels; ids of the sources must be below L.
Pairs collect_pairs(const std::vector<Answers>& sources, int64_t n_rows, const float* log_counts, int n_threads);

// Writes the k best candidates of each row under the trees, with their probabilities; ties to the smaller label id.
void fuse_answers(const std::vector<Answers>& sources, int64_t n_rows, const float* log_counts, const TreeArrays& trees,
                  int64_t k, int n_threads, int32_t* ids, float* scores);

}  // namespace lt
