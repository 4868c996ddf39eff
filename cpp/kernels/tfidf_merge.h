// Joins what the workers counted into one tree of n-grams. Which worker met an n-gram, and when, decides the numbers of
// the nodes here, but nothing that leaves: tfidf_order numbers the columns by the terms themselves.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/parallel.h"
#include "kernels/tfidf_count.h"

namespace lt {

// Node 0 is the root, nodes 1 .. n_words are tokens, the rest are longer n-grams; a prefix comes before what extends
// it.
struct NgramTree {
  struct Word {
    const uint8_t* bytes;  // inside a counter
    int64_t length;
  };
  struct Pair {
    uint32_t prefix, token;
  };
  std::vector<Word> words;        // (n_words + 1)
  std::vector<Pair> pairs;        // (n_nodes - n_words - 1)
  std::vector<uint32_t> n_texts;  // (n_nodes)
  std::vector<uint64_t> n_times;  // (n_nodes), or empty

  uint32_t first_pair() const { return static_cast<uint32_t>(words.size()); }
  uint32_t n_nodes() const { return static_cast<uint32_t>(words.size() + pairs.size()); }
};

// What a counter's own numbers stand for: a node of the tree, later a column.
struct Renumbering {
  std::vector<uint32_t> words, pairs;
  uint32_t& operator[](uint32_t id) { return id & kPairBit ? pairs[id & ~kPairBit] : words[id - 1]; }
  uint32_t operator[](uint32_t id) const { return id & kPairBit ? pairs[id & ~kPairBit] : words[id - 1]; }
};

// Also gives, for every counter, the node of each of its own.
NgramTree merge(const std::vector<NgramCounter*>& counters, std::vector<Renumbering>& nodes, int n_threads,
                const Poll& poll);

}  // namespace lt
