// Several rankings of the same rows into one: longtail.ensemble.combine tells the rules.
#pragma once

#include <cstdint>
#include <vector>

namespace lt {

enum class CombineRule { kMean, kRank, kSoftmax, kSigmoid };

// What one member answered: k ids and scores for each row, best first, padded with id -1.
struct Answers {
  int64_t k;
  const int32_t* ids;
  const float* scores;
};

// Writes the k best labels of each of n_rows rows. A label counts the mean over members of its value under the rule; a
// member that did not answer it counts 0 or, under kMean, its lowest answer of the row where that is negative. Ties go
// to the smaller label id.
void combine_answers(const std::vector<Answers>& members, int64_t n_rows, CombineRule rule, int64_t k, int n_threads,
                     int32_t* ids, float* scores);

}  // namespace lt
