#include "kernels/tfidf_merge.h"

#include <stdexcept>

namespace lt {

namespace {

constexpr int kParts = NgramCounter::kParts;

// The tokens or the longer n-grams of one part that have been met so far, with their sums.
struct Part {
  std::vector<NgramTree::Word> words;
  std::vector<NgramTree::Pair> pairs;
  std::vector<uint32_t> n_texts;
  std::vector<uint64_t> n_times;

  void add(uint32_t node, const NgramCounter::Sums& sums, uint32_t index) {
    const bool times = !sums.n_times.empty();
    if (node == n_texts.size()) {
      n_texts.push_back(0);
      if (times) n_times.push_back(0);
    }
    n_texts[node] += sums.n_texts[index];
    if (times) n_times[node] += sums.n_times[index];
  }
};

void merge_words(const std::vector<NgramCounter*>& counters, int p, Part& part, std::vector<Renumbering>& nodes) {
  Table<WordSlot<uint32_t>> table;
  for (size_t c = 0; c < counters.size(); ++c) {
    const NgramCounter& counter = *counters[c];
    table.reserve(counter.words[p].size());
    for (const uint32_t word : counter.words[p]) {
      const int64_t length = counter.word_begin[word + 1] - counter.word_begin[word];
      const uint8_t* bytes = counter.word_bytes.data() + counter.word_begin[word];
      const WordKey key = WordKey::of(bytes, length);
      WordSlot<uint32_t>& slot = table.find(key.hash(), [&](const WordSlot<uint32_t>& slot) {
        if (slot.key != key) return false;
        const NgramTree::Word& other = part.words[slot.id - 1];
        return !key.is_long() || (other.length == length && std::memcmp(other.bytes, bytes, length) == 0);
      });
      if (slot.id == 0) {
        part.words.push_back({bytes, length});
        slot = {key, static_cast<uint32_t>(part.words.size()), 0};
        table.added();
      }
      part.add(slot.id - 1, counter.word_sums, word);
      nodes[c].words[word] = slot.id - 1;
    }
  }
}

// Pairs are numbered from `first` on, within the part: the prefix of a pair is in the same part, or a word.
void merge_pairs(const std::vector<NgramCounter*>& counters, int p, uint32_t first, Part& part,
                 std::vector<Renumbering>& nodes) {
  Table<PairSlot<uint32_t>> table;
  const bool alone = counters.size() == 1;  // nothing to compare with: every pair is new
  for (size_t c = 0; c < counters.size(); ++c) {
    const NgramCounter& counter = *counters[c];
    if (!alone) table.reserve(counter.pairs[p].size());
    for (const auto& [index, own_prefix, own_token] : counter.pairs[p]) {
      const uint32_t prefix = nodes[c][own_prefix], token = nodes[c][own_token];
      uint32_t found = 0;
      if (!alone) {
        PairSlot<uint32_t>& slot = table.find(hash_pair(prefix, token),
                                              [&](const PairSlot<uint32_t>& slot) { return slot.is(prefix, token); });
        found = slot.id;
        if (!found) {
          slot = {prefix, token, static_cast<uint32_t>(part.pairs.size()) + 1, 0};
          table.added();
        }
      }
      if (!found) {
        part.pairs.push_back({prefix, token});
        found = static_cast<uint32_t>(part.pairs.size());
      }
      part.add(found - 1, counter.pair_sums, index);
      nodes[c].pairs[index] = first + found - 1;
    }
  }
}

template <class Size>
std::vector<uint32_t> starts(const std::vector<Part>& parts, uint64_t first, Size&& size) {
  std::vector<uint32_t> out(kParts + 1);
  for (int p = 0; p <= kParts; ++p) {
    if (first >= UINT32_MAX) throw std::length_error("2^32 different n-grams or more: use hashing (n_features)");
    out[p] = static_cast<uint32_t>(first);
    if (p < kParts) first += size(parts[p]);
  }
  return out;
}

void append(const Part& part, uint32_t at, NgramTree& tree) {
  std::copy(part.n_texts.begin(), part.n_texts.end(), tree.n_texts.begin() + at);
  if (!part.n_times.empty()) std::copy(part.n_times.begin(), part.n_times.end(), tree.n_times.begin() + at);
}

}  // namespace

NgramTree merge(const std::vector<NgramCounter*>& counters, std::vector<Renumbering>& nodes, int n_threads,
                const Poll& poll) {
  const auto each_part = [&](auto&& body) {
    if (!parallel_for(kParts, n_threads, [&](int64_t p, int) { body(static_cast<int>(p)); }, poll))
      throw std::runtime_error("stopped");
  };
  bool count_times = false;
  nodes.clear();
  for (const NgramCounter* counter : counters) {
    nodes.push_back({std::vector<uint32_t>(counter->word_sums.n_texts.size()),
                     std::vector<uint32_t>(counter->pair_sums.n_texts.size())});
    count_times |= !counter->word_sums.n_times.empty();
  }
  NgramTree tree;
  const auto resize = [&](uint32_t n_nodes) {
    tree.n_texts.resize(n_nodes);
    if (count_times) tree.n_times.resize(n_nodes);
  };

  std::vector<Part> parts(kParts);
  each_part([&](int p) { merge_words(counters, p, parts[p], nodes); });
  const std::vector<uint32_t> word_start = starts(parts, 1, [](const Part& part) { return part.words.size(); });
  const uint32_t first_pair = word_start[kParts];
  tree.words.resize(first_pair);
  resize(first_pair);
  each_part([&](int p) {
    for (size_t c = 0; c < counters.size(); ++c)
      for (const uint32_t word : counters[c]->words[p]) nodes[c].words[word] += word_start[p];
    std::copy(parts[p].words.begin(), parts[p].words.end(), tree.words.begin() + word_start[p]);
    append(parts[p], word_start[p], tree);
    parts[p] = Part();
  });

  each_part([&](int p) { merge_pairs(counters, p, first_pair, parts[p], nodes); });
  const std::vector<uint32_t> pair_start =
      starts(parts, first_pair, [](const Part& part) { return part.pairs.size(); });
  tree.pairs.resize(pair_start[kParts] - first_pair);
  resize(pair_start[kParts]);
  each_part([&](int p) {
    const uint32_t shift = pair_start[p] - first_pair;
    for (size_t c = 0; c < counters.size(); ++c)
      for (const auto& pair : counters[c]->pairs[p]) nodes[c].pairs[pair.index] += shift;
    NgramTree::Pair* out = tree.pairs.data() + shift;
    for (const auto& [prefix, token] : parts[p].pairs) *out++ = {prefix < first_pair ? prefix : prefix + shift, token};
    append(parts[p], pair_start[p], tree);
    parts[p] = Part();
  });
  return tree;
}

}  // namespace lt
