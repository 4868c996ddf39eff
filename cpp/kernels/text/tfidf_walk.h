// The walk over the n-grams of a text, shortest first, by numbers instead of bytes: shared by counting and looking up.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/text/tfidf_table.h"
#include "kernels/text/tokenize.h"

namespace lt {

struct NgramWalk {
  static constexpr int64_t kBatch = 256;
  Buffer<uint32_t> tokens;  // node of each token; 0 if it is not known
  Buffer<uint32_t> nodes;   // node of the n-gram that starts there, of the length reached so far; 0 if it is not known
  WordKey keys[kBatch];
  uint64_t hashes[kBatch];
  struct Position {
    int64_t at;
    bool counts;
  };
  Position positions[kBatch];

  // A visitor has the tables `words` and `pairs`, whose prefetch(hash) announces what is looked up next;
  // before_words(m) and before_pairs(m), called before every batch of at most m lookups; and
  //   word(key, hash, bytes, length, counts)  the node of a token, or 0
  //   pair(prefix, token, hash, counts)       the node of a longer n-gram, or 0
  // `counts` says whether the n-gram is one of those asked for, or only on the way to them.
  template <class Visitor>
  void run(const Tokens& text, const TextOptions& options, Visitor&& visitor) {
    tokens.reserve(text.n);
    nodes.reserve(text.n);
    run_words(text, options, visitor);
    int64_t longest = 0;
    for (int64_t s = 0; s < text.n_segments; ++s) longest = std::max(longest, text.segment[s + 1] - text.segment[s]);
    for (int64_t n = 2; n <= std::min(options.max_n, longest); ++n) run_pairs(text, options, n, visitor);
  }

 private:
  template <class Visitor>
  void run_words(const Tokens& text, const TextOptions& options, Visitor&& visitor) {
    const int64_t gap = options.gap();
    for (int64_t start = 0; start < text.n; start += kBatch) {
      const int64_t m = std::min(kBatch, text.n - start);
      const int64_t* begin = text.begin.data() + start;
      visitor.before_words(m);
      for (int64_t j = 0; j < m; ++j) {
        keys[j] = WordKey::of_padded(text.text.data() + begin[j], begin[j + 1] - gap - begin[j]);
        hashes[j] = keys[j].hash();
        visitor.words.prefetch(hashes[j]);
      }
      for (int64_t j = 0; j < m; ++j)
        tokens[start + j] = nodes[start + j] = visitor.word(keys[j], hashes[j], text.text.data() + begin[j],
                                                            begin[j + 1] - gap - begin[j], options.min_n == 1);
    }
  }

  // Extends the n-grams of n - 1 tokens by one token.
  template <class Visitor>
  void run_pairs(const Tokens& text, const TextOptions& options, int64_t n, Visitor&& visitor) {
    int64_t m = 0;
    const auto flush = [&] {
      visitor.before_pairs(m);
      for (int64_t j = 0; j < m; ++j) {
        const int64_t i = positions[j].at;
        hashes[j] = hash_pair(nodes[i], tokens[i + n - 1]);
        visitor.pairs.prefetch(hashes[j]);
      }
      for (int64_t j = 0; j < m; ++j) {
        const int64_t i = positions[j].at;
        nodes[i] = visitor.pair(nodes[i], tokens[i + n - 1], hashes[j], positions[j].counts);
      }
      m = 0;
    };
    for (int64_t s = 0; s < text.n_segments; ++s) {
      const int64_t first = text.segment[s], last = text.segment[s + 1];
      // A word that is too short for any n-gram counts as a whole: see for_each_ngram.
      const bool counts = n >= options.min_n || (options.analyzer == Analyzer::char_in_word && last - first == n);
      for (int64_t i = first; i + n <= last; ++i) {
        if (!nodes[i]) continue;
        if (!tokens[i + n - 1]) {
          nodes[i] = 0;
          continue;
        }
        positions[m++] = {i, counts};
        if (m == kBatch) flush();
      }
    }
    flush();
  }
};

}  // namespace lt
