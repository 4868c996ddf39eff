// A fixed set of terms, found by walking a text: the vocabulary when texts are transformed, and lists of stop words.
//
// The tree is built from the terms themselves (one array of bytes, one of offsets), which is all that is saved; the
// arrays may be memory-mapped and must outlive it.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/text/tfidf_table.h"
#include "kernels/text/tfidf_walk.h"

namespace lt {

struct TermsView {
  const uint8_t* bytes = nullptr;
  const int64_t* offsets = nullptr;  // (n + 1) ascending; term i is bytes[offsets[i] .. offsets[i + 1])
  int64_t n = 0;
};

class TermTree {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;  // no term

  TermTree() = default;
  // `gap`: 1 if terms are words with spaces between them, 0 if they are characters. Of equal terms the first is found.
  TermTree(const TermsView& terms, int64_t gap);

  // The number of the term that is this one token, or kNone. Reads 16 bytes whatever the length.
  uint32_t find_token(const uint8_t* bytes, int64_t length) const;

  // Calls found(term) for every n-gram of a text that is a term.
  template <class Found>
  void find_all(const Tokens& tokens, const TextOptions& options, NgramWalk& walk, Found&& found) const {
    Finder<Found> finder{*this, found};
    walk.run(tokens, options, finder);
  }

 private:
  // The payload is the number of the term, or kNone where only longer terms pass through.
  using Word = WordSlot<uint32_t>;
  using Pair = PairSlot<uint32_t>;
  const Word& word_slot(const WordKey& key, uint64_t hash, const uint8_t* bytes, int64_t length) const {
    return words_.find(hash, [&](const Word& slot) {
      if (slot.key != key) return false;
      const Span& span = spans_[slot.id - 1];
      return !key.is_long() || (span.length == length && std::memcmp(terms_.bytes + span.begin, bytes, length) == 0);
    });
  }
  template <class Found>
  struct Finder {
    const TermTree& tree;
    Found& found;
    const Table<Word>& words = tree.words_;
    const Table<Pair>& pairs = tree.pairs_;
    void before_words(int64_t) {}
    void before_pairs(int64_t) {}
    uint32_t word(const WordKey& key, uint64_t hash, const uint8_t* bytes, int64_t length, bool counts) {
      const Word& slot = tree.word_slot(key, hash, bytes, length);
      if (counts && slot.id && slot.payload != kNone) found(slot.payload);
      return slot.id;
    }
    uint32_t pair(uint32_t prefix, uint32_t token, uint64_t hash, bool counts) {
      const Pair& slot = pairs.find(hash, [&](const Pair& slot) { return slot.is(prefix, token); });
      if (counts && slot.id && slot.payload != kNone) found(slot.payload);
      return slot.id;
    }
  };
  struct Span {
    int64_t begin, length;
  };
  struct Step;
  int64_t token_end(int64_t begin, int64_t last, int64_t gap) const;
  void resolve(Step* fresh, const Step* all, size_t n);

  TermsView terms_;
  Table<Word> words_;
  Table<Pair> pairs_;
  std::vector<Span> spans_;  // (n_words) where in the terms a token can be read
  uint32_t n_pairs_ = 0;
};

}  // namespace lt
