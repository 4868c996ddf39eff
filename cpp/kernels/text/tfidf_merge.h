// Joins what the workers counted into one tree of n-grams. Which worker met an n-gram, and when, decides the numbers of
// the nodes here, but nothing that leaves: tfidf_order numbers the columns by the terms themselves.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/base/parallel.h"
#include "kernels/text/tfidf_count.h"

namespace lt {

constexpr uint32_t kNone = UINT32_MAX;  // no node, no column

struct Pruning {
  double min_texts = 1, max_texts = 1e300;  // a term stays if min_texts <= texts that hold it <= max_texts
  int64_t max_terms = -1;  // at most that many, those that occur most often; ties to the first in order

  bool keeps(uint32_t n_texts) const { return n_texts > 0 && n_texts >= min_texts && n_texts <= max_texts; }
};

// Node 0 is the root, nodes 1 .. n_words are tokens, the rest are longer n-grams; a prefix comes before what extends
// it.
struct NgramTree {
  struct Word {
    const uint8_t* bytes;  // inside a counter
    int64_t length;
  };
  std::vector<Word> words;                // (n_words + 1)
  std::vector<NgramCounter::Pair> pairs;  // (n_nodes - n_words - 1)
  std::vector<uint32_t> n_texts;          // (n_nodes)
  std::vector<uint64_t> n_times;          // (n_nodes), or empty
  int64_t n_seen = 0;                     // terms that were counted; longer ones that are not kept have no node

  uint32_t first_pair() const { return static_cast<uint32_t>(words.size()); }
  uint32_t n_nodes() const { return static_cast<uint32_t>(words.size() + pairs.size()); }
};

// What a counter's own numbers stand for: a node of the tree, later a column; kNone where there is none.
struct Renumbering {
  std::vector<uint32_t> words;          // (n_words of the counter)
  std::vector<uint32_t> pairs[kParts];  // (n_pairs of the part)

  uint32_t operator[](uint32_t id) const {
    return id & kPairBit ? pairs[pair_part(id)][pair_index(id)] : words[id - 1];
  }
};

// Also gives, for every counter, the node of each of its own.
NgramTree merge(const std::vector<NgramCounter*>& counters, const Pruning& pruning, std::vector<Renumbering>& nodes,
                int n_threads, const Poll& poll);

}  // namespace lt
