// From the tree of n-grams to the vocabulary: which terms stay, in which order, and their bytes.
//
// Terms are ordered by their characters, which is the order of their UTF-8 bytes, which is the tree's: a space precedes
// every character of a word, so "a b" < "a c" < "ab", and n-grams compare token by token. Only tokens are sorted as
// bytes; longer n-grams are sorted as pairs (place of the prefix, place of the token).
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/parallel.h"
#include "kernels/tfidf_merge.h"

namespace lt {

struct Pruning {
  double min_texts = 1, max_texts = 1e300;  // a term stays if min_texts <= texts that hold it <= max_texts
  int64_t max_terms = -1;  // at most that many, those that occur most often; ties to the first in order
};

struct Vocabulary {
  static constexpr uint32_t kNone = UINT32_MAX;
  std::vector<uint32_t> column;   // (n_nodes) of a node of the tree; kNone if it is no term
  std::vector<uint32_t> n_texts;  // (n_terms)
  std::vector<uint8_t> bytes;     // all terms, one after the other
  std::vector<int64_t> offsets;   // (n_terms + 1)
};

// `gap`: bytes (spaces) between the tokens of a term.
Vocabulary order_terms(const NgramTree& tree, int64_t gap, const Pruning& pruning, int n_threads);

}  // namespace lt
