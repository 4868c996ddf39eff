// Counting n-grams: what they are, and in how many texts each occurs. One counter a worker; tfidf_merge joins them.
//
// Every n-gram is a node of a tree and has a number, the order in which the counter met it: a token is a node below the
// root, a longer n-gram the node of its prefix extended by a token. So only tokens are compared as bytes; an n-gram of
// any length is a pair of numbers, found in a table with slots of 16 bytes. Prefixes become nodes whether or not they
// count as terms themselves: a node is a term if it was counted in at least one text.
//
// A node's slot also remembers its `seat` in the row being counted. If that seat is taken by the node, it has been met
// in this text before; if not (an old seat, or none), it has not. No stamps need clearing between texts.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/tfidf_table.h"
#include "kernels/tokenize.h"

namespace lt {

// An entry of a row while it is counted: the number of a node or column, above the number of times it occurs.
using Entry = uint64_t;
inline Entry make_entry(uint32_t id, uint32_t times) { return uint64_t{id} << 32 | times; }
inline uint32_t entry_id(Entry entry) { return static_cast<uint32_t>(entry >> 32); }
inline uint32_t entry_times(Entry entry) { return static_cast<uint32_t>(entry); }

class NgramCounter {
 public:
  // Nodes are dealt to parts by the hash of their first token, the same in every counter, so that counters can be
  // merged part by part.
  static constexpr int kParts = 64;
  struct Word {
    uint32_t id, word;
  };
  struct Pair {
    uint32_t id, prefix, token;  // nodes
  };

  // count_times: also sum up how often each n-gram occurs.
  NgramCounter(const TextOptions& options, bool count_times) : options_(options), count_times_(count_times) {
    if (count_times) n_times.push_back(0);
  }

  // Counts the n-grams of a text and appends its row to rows[0 .. size).
  void add(const Tokens& tokens, Buffer<Entry>& rows, int64_t& size);

  // Gives the tables back; what was counted stays.
  void finish();

  std::vector<uint32_t> n_texts{0};  // (n_nodes) texts that hold the node's n-gram; node 0 is the root
  std::vector<uint64_t> n_times;     // (n_nodes) occurrences, or empty
  std::vector<Word> words[kParts];
  std::vector<Pair> pairs[kParts];  // a prefix comes before what extends it
  std::vector<uint8_t> word_bytes;
  std::vector<int64_t> word_begin{0};  // (n_words + 1)

 private:
  static constexpr int64_t kBatch = 256;
  struct Position {
    int64_t at;
    bool counts;
  };
  uint32_t new_node(uint8_t part);
  void count(uint32_t id, uint32_t& seat);
  void count_words(const Tokens& tokens);
  void count_pairs(const Tokens& tokens, int64_t n);
  void flush(const Position* positions, int64_t m, int64_t n);

  const TextOptions& options_;
  const bool count_times_;
  Table<WordSlot> word_table_;
  Table<PairSlot> pair_table_;
  std::vector<uint8_t> part_{0};  // (n_nodes)
  Buffer<uint32_t> ids_, nodes_;  // of the text: node of each token; node of the n-gram that starts there
  Buffer<Entry>* rows_ = nullptr;
  Entry* row_ = nullptr;
  int64_t begin_ = 0;
  uint32_t row_size_ = 0;
};

}  // namespace lt
