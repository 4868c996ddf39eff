#include "kernels/tfidf_merge.h"

#include <numeric>
#include <stdexcept>

namespace lt {

namespace {

constexpr int kParts = NgramCounter::kParts;

// The nodes of one part that have been met so far, with their sums.
struct Part {
  std::vector<NgramTree::Word> words;
  std::vector<NgramTree::Pair> pairs;
  std::vector<uint32_t> n_texts;
  std::vector<uint64_t> n_times;

  void add(uint32_t node, const NgramCounter& counter, uint32_t id) {
    if (node == n_texts.size()) {
      n_texts.push_back(0);
      if (!counter.n_times.empty()) n_times.push_back(0);
    }
    n_texts[node] += counter.n_texts[id];
    if (!counter.n_times.empty()) n_times[node] += counter.n_times[id];
  }
};

void merge_words(const std::vector<NgramCounter*>& counters, int p, Part& part,
                 std::vector<std::vector<uint32_t>>& nodes) {
  Table<WordSlot> table;
  for (size_t c = 0; c < counters.size(); ++c) {
    const NgramCounter& counter = *counters[c];
    for (const auto [id, word] : counter.words[p]) {
      const int64_t length = counter.word_begin[word + 1] - counter.word_begin[word];
      const uint8_t* bytes = counter.word_bytes.data() + counter.word_begin[word];
      uint8_t padded[16] = {};
      if (length <= 16) std::memcpy(padded, bytes, length);
      const WordKey key = WordKey::of(length <= 16 ? padded : bytes, length);
      table.reserve(1);
      WordSlot& slot = table.find(key.hash(), [&](const WordSlot& slot) {
        if (slot.key != key) return false;
        const NgramTree::Word& other = part.words[slot.word];
        return !key.is_long() || (other.length == length && std::memcmp(other.bytes, bytes, length) == 0);
      });
      if (slot.id == 0) {
        slot = {key, 1, 0, static_cast<uint32_t>(part.words.size()), 0};
        part.words.push_back({bytes, length});
        table.added();
      }
      part.add(slot.word, counter, id);
      nodes[c][id] = slot.word;
    }
  }
}

// Pairs are numbered from `first` on, within the part: the prefix of a pair is in the same part or is a word.
void merge_pairs(const std::vector<NgramCounter*>& counters, int p, uint32_t first, Part& part,
                 std::vector<std::vector<uint32_t>>& nodes) {
  Table<PairSlot> table;
  for (size_t c = 0; c < counters.size(); ++c) {
    const NgramCounter& counter = *counters[c];
    for (const auto& pair : counter.pairs[p]) {
      const uint32_t prefix = nodes[c][pair.prefix], token = nodes[c][pair.token];
      table.reserve(1);
      PairSlot& slot = table.find(PairSlot::hash(prefix, token),
                                  [&](const PairSlot& slot) { return slot.prefix == prefix && slot.token == token; });
      if (slot.id == 0) {
        part.pairs.push_back({prefix, token});
        slot = {prefix, token, static_cast<uint32_t>(part.pairs.size()), 0};
        table.added();
      }
      part.add(slot.id - 1, counter, pair.id);
      nodes[c][pair.id] = first + slot.id - 1;
    }
  }
}

template <class Size>
std::vector<uint64_t> starts(const std::vector<Part>& parts, uint64_t first, Size&& size) {
  std::vector<uint64_t> out(kParts + 1, first);
  for (int p = 0; p < kParts; ++p) out[p + 1] = out[p] + size(parts[p]);
  if (out[kParts] >= UINT32_MAX) throw std::length_error("more than 2^32 - 2 different n-grams");
  return out;
}

void append(const Part& part, uint64_t at, NgramTree& tree) {
  std::copy(part.n_texts.begin(), part.n_texts.end(), tree.n_texts.begin() + at);
  std::copy(part.n_times.begin(), part.n_times.end(), tree.n_times.begin() + (part.n_times.empty() ? 0 : at));
}

}  // namespace

NgramTree merge(const std::vector<NgramCounter*>& counters, std::vector<std::vector<uint32_t>>& nodes, int n_threads,
                const Poll& poll) {
  const auto each_part = [&](auto&& body) {
    if (!parallel_for(kParts, n_threads, [&](int64_t p, int) { body(static_cast<int>(p)); }, poll))
      throw std::runtime_error("stopped");
  };
  nodes.clear();
  for (const NgramCounter* counter : counters) nodes.emplace_back(counter->n_texts.size());
  const bool count_times = !counters.empty() && !counters[0]->n_times.empty();

  NgramTree tree;
  std::vector<Part> parts(kParts);
  each_part([&](int p) { merge_words(counters, p, parts[p], nodes); });
  const auto word_start = starts(parts, 1, [](const Part& part) { return part.words.size(); });
  const uint32_t n_words = static_cast<uint32_t>(word_start[kParts] - 1);
  tree.words.resize(n_words + 1);
  tree.n_texts.resize(n_words + 1);
  if (count_times) tree.n_times.resize(n_words + 1);
  each_part([&](int p) {
    for (size_t c = 0; c < counters.size(); ++c)
      for (const auto& word : counters[c]->words[p]) nodes[c][word.id] += static_cast<uint32_t>(word_start[p]);
    std::copy(parts[p].words.begin(), parts[p].words.end(), tree.words.begin() + word_start[p]);
    append(parts[p], word_start[p], tree);
    parts[p] = Part();
  });

  each_part([&](int p) { merge_pairs(counters, p, n_words + 1, parts[p], nodes); });
  const auto pair_start = starts(parts, n_words + 1, [](const Part& part) { return part.pairs.size(); });
  tree.pairs.resize(pair_start[kParts] - n_words - 1);
  tree.n_texts.resize(pair_start[kParts]);
  if (count_times) tree.n_times.resize(pair_start[kParts]);
  each_part([&](int p) {
    const uint32_t shift = static_cast<uint32_t>(pair_start[p] - n_words - 1);
    for (size_t c = 0; c < counters.size(); ++c)
      for (const auto& pair : counters[c]->pairs[p]) nodes[c][pair.id] += shift;
    NgramTree::Pair* out = tree.pairs.data() + shift;
    for (const NgramTree::Pair& pair : parts[p].pairs)
      *out++ = {pair.prefix > n_words ? pair.prefix + shift : pair.prefix, pair.token};
    append(parts[p], pair_start[p], tree);
    parts[p] = Part();
  });
  return tree;
}

}  // namespace lt
