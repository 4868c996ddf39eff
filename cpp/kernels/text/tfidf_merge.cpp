#include "kernels/text/tfidf_merge.h"

#include <algorithm>
#include <stdexcept>

namespace lt {

namespace {

// The tokens or the longer n-grams of one part that have been met so far, with their sums.
struct Part {
  std::vector<NgramTree::Word> words;
  std::vector<NgramCounter::Pair> pairs;
  std::vector<uint32_t> n_texts;
  std::vector<uint64_t> n_times;
  std::vector<uint32_t> kept;  // new index of each pair, or kNone
  int64_t n_seen = 0;

  // Adds what a counter has for its node `index` to the node `node`, which may be new.
  template <class Counted>
  void add(uint32_t node, const Counted& counted, uint32_t index) {
    const bool times = !counted.n_times.empty();
    if (node == n_texts.size()) {
      n_texts.push_back(0);
      if (times) n_times.push_back(0);
    }
    n_texts[node] += counted.n_texts[index];
    if (times) n_times[node] += counted.n_times[index];
  }
};

void merge_words(const std::vector<NgramCounter*>& counters, int p, Part& part, std::vector<Renumbering>& nodes) {
  Table<WordSlot<uint32_t>> table;
  for (size_t c = 0; c < counters.size(); ++c) {
    const NgramCounter::Words& counted = counters[c]->words;
    table.reserve(counted.of_part[p].size());
    for (const uint32_t word : counted.of_part[p]) {
      const int64_t length = counted.begin[word + 1] - counted.begin[word];
      const uint8_t* bytes = counted.bytes.data() + counted.begin[word];
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
      part.add(slot.id - 1, counted, word);
      nodes[c].words[word] = slot.id - 1;
    }
  }
}

// Pairs are numbered from `first` on, within the part: the prefix of a pair is in the same part, or a token.
void merge_pairs(const std::vector<NgramCounter*>& counters, int p, uint32_t first, Part& part,
                 std::vector<Renumbering>& nodes) {
  Table<PairSlot<uint32_t>> table;
  const bool alone = counters.size() == 1;  // nothing to compare with: every pair is new
  for (size_t c = 0; c < counters.size(); ++c) {
    const NgramCounter::Pairs& counted = counters[c]->pairs[p];
    const uint32_t n = static_cast<uint32_t>(counted.nodes.size());
    std::vector<uint32_t>& own = nodes[c].pairs[p];
    own.resize(n);
    part.pairs.reserve(part.pairs.size() + n);
    part.n_texts.reserve(part.pairs.size() + n);
    if (!alone) table.reserve(n);
    for (uint32_t i = 0; i < n; ++i) {
      const uint32_t prefix = nodes[c][counted.nodes[i].prefix], token = nodes[c][counted.nodes[i].token];
      const uint32_t fresh = static_cast<uint32_t>(part.pairs.size()) + 1;
      uint32_t found = fresh;
      if (!alone) {
        PairSlot<uint32_t>& slot = table.find(hash_pair(prefix, token),
                                              [&](const PairSlot<uint32_t>& slot) { return slot.is(prefix, token); });
        if (slot.id == 0) {
          slot = {prefix, token, fresh, 0};
          table.added();
        }
        found = slot.id;
      }
      if (found == fresh) part.pairs.push_back({prefix, token});
      part.add(found - 1, counted, i);
      own[i] = first + found - 1;
    }
  }
}

// Drops the pairs that are neither kept as a term nor lead to one. Most are dropped, and never reach the tree.
void prune_pairs(const Pruning& pruning, uint32_t first, Part& part) {
  const uint32_t n = static_cast<uint32_t>(part.pairs.size());
  part.kept.assign(n, kNone);
  for (uint32_t i = n; i-- > 0;) {
    part.n_seen += part.n_texts[i] > 0;
    if (pruning.keeps(part.n_texts[i])) part.kept[i] = 0;
    if (part.kept[i] != kNone && part.pairs[i].prefix >= first) part.kept[part.pairs[i].prefix - first] = 0;
  }
  uint32_t size = 0;
  for (uint32_t i = 0; i < n; ++i) {
    if (part.kept[i] == kNone) continue;
    const auto [prefix, token] = part.pairs[i];
    part.pairs[size] = {prefix < first ? prefix : first + part.kept[prefix - first], token};
    part.n_texts[size] = part.n_texts[i];
    if (!part.n_times.empty()) part.n_times[size] = part.n_times[i];
    part.kept[i] = size++;
  }
  part.pairs.resize(size);
  part.n_texts.resize(size);
  if (!part.n_times.empty()) part.n_times.resize(size);
}

// Where each part begins in the tree.
std::vector<uint32_t> starts(const std::vector<Part>& parts, uint64_t first) {
  std::vector<uint32_t> out(kParts + 1);
  for (int p = 0; p <= kParts; ++p) {
    if (first >= UINT32_MAX) throw std::length_error("2^32 different n-grams or more: use hashing (n_features)");
    out[p] = static_cast<uint32_t>(first);
    if (p < kParts) first += parts[p].n_texts.size();
  }
  return out;
}

}  // namespace

NgramTree merge(const std::vector<NgramCounter*>& counters, const Pruning& pruning, std::vector<Renumbering>& nodes,
                int n_threads, const Poll& poll) {
  const auto each_part = [&](auto&& body) {
    if (!parallel_for(kParts, n_threads, [&](int64_t p, int) { body(static_cast<int>(p)); }, poll))
      throw std::runtime_error("stopped");
  };
  nodes.assign(counters.size(), {});
  for (size_t c = 0; c < counters.size(); ++c) nodes[c].words.resize(counters[c]->words.n_texts.size());
  NgramTree tree;
  const auto append = [&](const Part& part, uint32_t at) {
    std::copy(part.n_texts.begin(), part.n_texts.end(), tree.n_texts.begin() + at);
    if (!part.n_times.empty()) std::copy(part.n_times.begin(), part.n_times.end(), tree.n_times.begin() + at);
  };
  const auto resize = [&](uint32_t n_nodes, const std::vector<Part>& parts) {
    tree.n_texts.resize(n_nodes);
    if (std::any_of(parts.begin(), parts.end(), [](const Part& part) { return !part.n_times.empty(); }))
      tree.n_times.resize(n_nodes);
    for (const Part& part : parts) tree.n_seen += part.n_seen;
  };

  std::vector<Part> parts(kParts);
  each_part([&](int p) { merge_words(counters, p, parts[p], nodes); });
  const std::vector<uint32_t> word_start = starts(parts, 1);
  const uint32_t first_pair = word_start[kParts];
  tree.words.resize(first_pair);
  resize(first_pair, parts);
  each_part([&](int p) {
    for (size_t c = 0; c < counters.size(); ++c)
      for (const uint32_t word : counters[c]->words.of_part[p]) nodes[c].words[word] += word_start[p];
    std::copy(parts[p].words.begin(), parts[p].words.end(), tree.words.begin() + word_start[p]);
    append(parts[p], word_start[p]);
    parts[p] = Part();
  });
  for (const uint32_t n : tree.n_texts) tree.n_seen += n > 0;

  each_part([&](int p) {
    merge_pairs(counters, p, first_pair, parts[p], nodes);
    prune_pairs(pruning, first_pair, parts[p]);
  });
  const std::vector<uint32_t> pair_start = starts(parts, first_pair);
  tree.pairs.resize(pair_start[kParts] - first_pair);
  resize(pair_start[kParts], parts);
  each_part([&](int p) {
    const uint32_t shift = pair_start[p] - first_pair;
    const std::vector<uint32_t>& kept = parts[p].kept;
    for (Renumbering& own : nodes)
      for (uint32_t& node : own.pairs[p]) {
        const uint32_t index = kept[node - first_pair];
        node = index == kNone ? kNone : pair_start[p] + index;
      }
    NgramCounter::Pair* out = tree.pairs.data() + shift;
    for (const auto& [prefix, token] : parts[p].pairs) *out++ = {prefix < first_pair ? prefix : prefix + shift, token};
    append(parts[p], pair_start[p]);
    parts[p] = Part();
  });
  return tree;
}

}  // namespace lt
