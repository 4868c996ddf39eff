#include "kernels/text/tfidf_order.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <string_view>

namespace lt {

namespace {

enum Use : uint8_t { kUnused = 0, kTerm = 1, kPart = 2 };  // a term of the vocabulary; a token or prefix of one

// Which nodes are needed, and how many terms each has among itself and what extends it.
struct Pruned {
  std::vector<uint8_t> use;
  std::vector<uint32_t> n_terms;
};

Pruned prune(const NgramTree& tree, const Pruning& pruning) {
  const uint32_t n = tree.n_nodes(), first = tree.first_pair();
  Pruned out{std::vector<uint8_t>(n), std::vector<uint32_t>(n)};
  for (uint32_t node = n - 1; node > 0; --node) {  // what extends a prefix is seen before it
    if (pruning.keeps(tree.n_texts[node])) {
      out.use[node] |= kTerm;
      ++out.n_terms[node];
    }
    if (node >= first && out.use[node]) {
      const auto [prefix, token] = tree.pairs[node - first];
      out.use[prefix] |= kPart;
      out.use[token] |= kPart;
      out.n_terms[prefix] += out.n_terms[node];
    }
  }
  return out;
}

struct Keyed {
  uint64_t key;
  uint32_t node;
};

// The used tokens by their bytes.
std::vector<uint32_t> sort_words(const NgramTree& tree, const std::vector<uint8_t>& use) {
  std::vector<Keyed> items;
  for (uint32_t node = 1; node < tree.first_pair(); ++node) {
    if (!use[node]) continue;
    uint8_t head[8] = {};
    std::memcpy(head, tree.words[node].bytes, std::min<int64_t>(8, tree.words[node].length));
    items.push_back({__builtin_bswap64(load64(head)), node});
  }
  const auto bytes = [&](const Keyed& item) {
    const NgramTree::Word& word = tree.words[item.node];
    return std::string_view(reinterpret_cast<const char*>(word.bytes), word.length);
  };
  std::sort(items.begin(), items.end(),
            [&](const Keyed& a, const Keyed& b) { return a.key != b.key ? a.key < b.key : bytes(a) < bytes(b); });
  std::vector<uint32_t> out(items.size());
  for (size_t i = 0; i < items.size(); ++i) out[i] = items[i].node;
  return out;
}

// The used longer n-grams by the number of their tokens; [0] has those of two.
std::vector<std::vector<Keyed>> by_length(const NgramTree& tree, const std::vector<uint8_t>& use) {
  const uint32_t first = tree.first_pair();
  std::vector<std::vector<Keyed>> out;
  std::vector<uint32_t> depth(tree.pairs.size());
  for (uint32_t i = 0; i < tree.pairs.size(); ++i) {
    if (!use[first + i]) continue;
    const uint32_t prefix = tree.pairs[i].prefix;
    depth[i] = prefix < first ? 0 : depth[prefix - first] + 1;
    if (depth[i] == out.size()) out.emplace_back();
    out[depth[i]].push_back({0, first + i});
  }
  return out;
}

// Stable, least significant digit first; only `bits` of the key are looked at.
void radix_sort(std::vector<Keyed>& items, int bits) {
  constexpr int kDigit = 11;
  constexpr uint64_t kMask = (1 << kDigit) - 1;
  std::vector<Keyed> other(items.size());
  for (int shift = 0; shift < bits; shift += kDigit) {
    size_t start[kMask + 2] = {};
    for (const Keyed& item : items) ++start[(item.key >> shift & kMask) + 1];
    std::partial_sum(start, start + kMask + 2, start);
    for (const Keyed& item : items) other[start[item.key >> shift & kMask]++] = item;
    items.swap(other);
  }
}

// Columns in the order of the terms, for every used node: where the node stands or, if it is no term, would.
std::vector<uint32_t> number_columns(const NgramTree& tree, const Pruned& pruned) {
  std::vector<uint32_t> column(tree.n_nodes(), kNone), place(tree.n_nodes());
  const std::vector<uint32_t> words = sort_words(tree, pruned.use);
  uint32_t next = 0;
  for (uint32_t i = 0; i < words.size(); ++i) {
    place[words[i]] = i;
    column[words[i]] = next;
    next += pruned.n_terms[words[i]];
  }
  const int word_bits = std::bit_width(words.size());
  size_t n_prefixes = words.size();
  for (std::vector<Keyed>& items : by_length(tree, pruned.use)) {
    const auto pair = [&](const Keyed& item) { return tree.pairs[item.node - tree.first_pair()]; };
    for (Keyed& item : items) item.key = uint64_t{place[pair(item).prefix]} << word_bits | place[pair(item).token];
    radix_sort(items, word_bits + std::bit_width(n_prefixes));
    n_prefixes = items.size();
    uint32_t last = 0;
    for (uint32_t i = 0; i < items.size(); ++i) {
      const uint32_t node = items[i].node, prefix = pair(items[i]).prefix;
      if (prefix != last) next = column[prefix] + (pruned.use[prefix] & kTerm ? 1 : 0);
      last = prefix;
      place[node] = i;
      column[node] = next;
      next += pruned.n_terms[node];
    }
  }
  return column;
}

// Keeps the most frequent terms; `terms` are the nodes in order.
std::vector<uint32_t> most_frequent(const NgramTree& tree, const std::vector<uint32_t>& terms, int64_t max_terms) {
  const auto times = [&](uint32_t i) { return tree.n_times.empty() ? tree.n_texts[terms[i]] : tree.n_times[terms[i]]; };
  std::vector<uint32_t> ranked(terms.size());
  std::iota(ranked.begin(), ranked.end(), 0u);
  std::nth_element(ranked.begin(), ranked.begin() + max_terms, ranked.end(), [&](uint32_t a, uint32_t b) {
    const uint64_t x = times(a), y = times(b);
    return x != y ? x > y : a < b;
  });
  ranked.resize(max_terms);
  std::sort(ranked.begin(), ranked.end());
  for (uint32_t& i : ranked) i = terms[i];
  return ranked;
}

void write_terms(const NgramTree& tree, int64_t gap, const std::vector<uint32_t>& terms, int n_threads,
                 Vocabulary& out) {
  const uint32_t first = tree.first_pair();
  const auto each_token = [&](uint32_t node, auto&& visit) {  // from the last to the first
    for (; node >= first; node = tree.pairs[node - first].prefix) visit(tree.words[tree.pairs[node - first].token]);
    visit(tree.words[node]);
  };
  constexpr int64_t kGrain = 1 << 14;
  const int64_t n = static_cast<int64_t>(terms.size());
  out.offsets.assign(n + 1, 0);
  parallel_blocks(n, kGrain, n_threads, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      int64_t length = -gap;
      each_token(terms[i], [&](const NgramTree::Word& word) { length += word.length + gap; });
      out.offsets[i + 1] = length;
    }
  });
  std::partial_sum(out.offsets.begin(), out.offsets.end(), out.offsets.begin());
  out.bytes.resize(out.offsets[n]);
  parallel_blocks(n, kGrain, n_threads, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      uint8_t* to = out.bytes.data() + out.offsets[i + 1] + gap;
      each_token(terms[i], [&](const NgramTree::Word& word) {
        to -= gap;
        if (gap && to != out.bytes.data() + out.offsets[i + 1]) *to = ' ';
        to -= word.length;
        std::memcpy(to, word.bytes, word.length);
      });
    }
  });
}

}  // namespace

Vocabulary order_terms(const NgramTree& tree, int64_t gap, const Pruning& pruning, int n_threads) {
  Vocabulary out;
  std::vector<uint32_t> terms;
  {
    const Pruned pruned = prune(tree, pruning);
    out.column = number_columns(tree, pruned);
    terms.resize(std::count_if(pruned.use.begin(), pruned.use.end(), [](uint8_t use) { return use & kTerm; }));
    for (uint32_t node = 0; node < tree.n_nodes(); ++node)
      if (pruned.use[node] & kTerm) terms[out.column[node]] = node;
  }
  if (pruning.max_terms >= 0 && pruning.max_terms < static_cast<int64_t>(terms.size()))
    terms = most_frequent(tree, terms, pruning.max_terms);
  std::fill(out.column.begin(), out.column.end(), kNone);
  out.n_texts.resize(terms.size());
  out.n_times.resize(tree.n_times.empty() ? 0 : terms.size());
  for (uint32_t i = 0; i < terms.size(); ++i) {
    out.column[terms[i]] = i;
    out.n_texts[i] = tree.n_texts[terms[i]];
    if (!tree.n_times.empty()) out.n_times[i] = tree.n_times[terms[i]];
  }
  write_terms(tree, gap, terms, n_threads, out);
  return out;
}

}  // namespace lt
