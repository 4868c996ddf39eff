// From the tree of n-grams to the vocabulary: which terms stay, in which order, and their bytes.
//
// Terms are ordered by their characters, which is the order of their UTF-8 bytes, which is the tree's: a space precedes
// every character of a word, so "a b" < "a c" < "ab", and n-grams compare token by token. Only tokens are sorted as
// bytes; longer n-grams are sorted as pairs (place of the prefix, place of the token).
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/base/parallel.h"
#include "kernels/text/tfidf_merge.h"

namespace lt {

struct Vocabulary {
  std::vector<uint32_t> column;   // (n_nodes) of a node of the tree; kNone if it is no term
  std::vector<uint32_t> n_texts;  // (n_terms)
  std::vector<uint64_t> n_times;  // (n_terms), or empty
  std::vector<uint8_t> bytes;     // all terms, one after the other
  std::vector<int64_t> offsets;   // (n_terms + 1)
};

// `gap`: bytes (spaces) between the tokens of a term.
Vocabulary order_terms(const NgramTree& tree, int64_t gap, const Pruning& pruning, int n_threads);

}  // namespace lt
