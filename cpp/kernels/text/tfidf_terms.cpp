#include "kernels/text/tfidf_terms.h"

#include <stdexcept>

namespace lt {

// One token of a term, which makes the n-gram that ends there.
struct TermTree::Step {
  int64_t begin, end;   // its bytes
  uint32_t term;        // the term that ends there, or kNone
  uint32_t depth;       // tokens before it
  uint32_t parent;      // step of the n-gram before it, if depth > 0
  uint32_t word, node;  // numbers, once resolved
};

TermTree::TermTree(const TermsView& terms, int64_t gap) : terms_(terms) {
  if (terms.n >= kPairBit) throw std::invalid_argument("2^31 terms or more");
  constexpr size_t kBatch = 512;
  const auto equal = [&](const Step& step, int64_t begin, int64_t end) {
    return step.end - step.begin == end - begin &&
           std::memcmp(terms.bytes + step.begin, terms.bytes + begin, end - begin) == 0;
  };
  words_.reserve(1);
  pairs_.reserve(1);
  std::vector<Step> steps;
  std::vector<uint32_t> path;  // steps of the last term
  size_t n_resolved = 0;
  for (int64_t i = 0; i < terms.n; ++i) {
    const int64_t last = terms.offsets[i + 1];
    uint32_t depth = 0;
    for (int64_t begin = terms.offsets[i], end = begin - 1; end != last; begin = end + gap, ++depth) {
      end = token_end(begin, last, gap);
      // Sorted terms mostly begin like the one before: those steps need not be taken again.
      if (depth < path.size()) {
        if (end != last && equal(steps[path[depth]], begin, end)) continue;
        path.resize(depth);
      }
      const uint32_t term = end == last ? static_cast<uint32_t>(i) : kNone;
      steps.push_back({begin, end, term, depth, depth > 0 ? path.back() : 0, 0, 0});
      path.push_back(static_cast<uint32_t>(steps.size() - 1));
    }
    if (steps.size() - n_resolved < kBatch && i + 1 < terms.n) continue;
    resolve(steps.data() + n_resolved, steps.data(), steps.size() - n_resolved);
    std::vector<Step> kept;
    for (uint32_t& step : path) {
      kept.push_back(steps[step]);
      step = static_cast<uint32_t>(kept.size() - 1);
    }
    steps.swap(kept);
    n_resolved = steps.size();
  }
}

int64_t TermTree::token_end(int64_t begin, int64_t last, int64_t gap) const {
  if (begin >= last) return last;
  if (gap == 0) return std::min(last, begin + utf8_length(terms_.bytes[begin]));
  const void* space = std::memchr(terms_.bytes + begin, ' ', last - begin);
  return space ? static_cast<const uint8_t*>(space) - terms_.bytes : last;
}

// Finds or makes the nodes of new steps, length by length, with the same batches of lookups as NgramWalk.
void TermTree::resolve(Step* fresh, const Step* all, size_t n) {
  std::vector<WordKey> keys(n);
  uint32_t deepest = 0;
  words_.reserve(n);
  for (size_t j = 0; j < n; ++j) {
    keys[j] = WordKey::of(terms_.bytes + fresh[j].begin, fresh[j].end - fresh[j].begin);
    words_.prefetch(keys[j].hash());
    deepest = std::max(deepest, fresh[j].depth);
  }
  for (size_t j = 0; j < n; ++j) {
    Step& step = fresh[j];
    const int64_t length = step.end - step.begin;
    Word& slot = const_cast<Word&>(word_slot(keys[j], keys[j].hash(), terms_.bytes + step.begin, length));
    if (slot.id == 0) {
      spans_.push_back({step.begin, length});
      slot = {keys[j], static_cast<uint32_t>(spans_.size()), kNone};
      words_.added();
    }
    step.word = step.node = slot.id;
    if (step.depth == 0) slot.payload = std::min(slot.payload, step.term);
  }
  for (uint32_t depth = 1; depth <= deepest; ++depth) {
    pairs_.reserve(n);
    for (size_t j = 0; j < n; ++j)
      if (fresh[j].depth == depth) pairs_.prefetch(hash_pair(all[fresh[j].parent].node, fresh[j].word));
    for (size_t j = 0; j < n; ++j) {
      Step& step = fresh[j];
      if (step.depth != depth) continue;
      const uint32_t prefix = all[step.parent].node;
      Pair& slot =
          pairs_.find(hash_pair(prefix, step.word), [&](const Pair& slot) { return slot.is(prefix, step.word); });
      if (slot.id == 0) {
        if (n_pairs_ >= kPairBit - 1) throw std::invalid_argument("2^31 n-grams or more");
        slot = {prefix, step.word, kPairBit | n_pairs_++, kNone};
        pairs_.added();
      }
      step.node = slot.id;
      slot.payload = std::min(slot.payload, step.term);
    }
  }
}

uint32_t TermTree::find_token(const uint8_t* bytes, int64_t length) const {
  const WordKey key = WordKey::of_padded(bytes, length);
  const Word& slot = word_slot(key, key.hash(), bytes, length);
  return slot.id ? slot.payload : kNone;
}

}  // namespace lt
