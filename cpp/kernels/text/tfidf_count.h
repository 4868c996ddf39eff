// Counting n-grams: what they are, and in how many texts each occurs. One counter a worker; tfidf_merge joins them.
//
// Nodes are numbered in the order the counter meets them. Prefixes become nodes whether or not they count as terms
// themselves: a node is a term if it was counted in at least one text.
//
// A node's slot remembers its seat in the row being counted. If that seat is taken by the node, it has been met in this
// text before; if not (an old seat, or none), it has not. No marks need clearing between texts. What matters most here
// is that slots are small, since most of the time goes into waiting for them: of the seat and of the number of texts
// they hold the low 16 bits.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "kernels/text/tfidf_table.h"
#include "kernels/text/tfidf_walk.h"
#include "kernels/text/tokenize.h"

namespace lt {

// An entry of a row while it is counted: the number of a node or column, above the number of times it occurs.
using Entry = uint64_t;
inline Entry make_entry(uint32_t id, uint32_t times) { return uint64_t{id} << 32 | times; }
inline uint32_t entry_id(Entry entry) { return static_cast<uint32_t>(entry >> 32); }
inline uint32_t entry_times(Entry entry) { return static_cast<uint32_t>(entry); }

// Nodes are dealt to parts by the bytes of their first tokens, the same in every counter, so that counters can be
// merged part by part. A longer n-gram is numbered within its part, which is that of its prefix unless that is a token.
constexpr int kPartBits = 6, kParts = 1 << kPartBits, kIndexBits = 31 - kPartBits;
inline uint32_t pair_id(uint32_t part, uint32_t index) { return kPairBit | part << kIndexBits | index; }
inline uint32_t pair_part(uint32_t id) { return (id & ~kPairBit) >> kIndexBits; }
inline uint32_t pair_index(uint32_t id) { return id & ((1u << kIndexBits) - 1); }

class NgramCounter {
 public:
  struct Pair {
    uint32_t prefix, token;  // nodes
  };
  struct Pairs {                    // of one part, by index
    std::vector<Pair> nodes;        // a prefix comes before what extends it
    std::vector<uint32_t> n_texts;  // as for words
    std::vector<uint64_t> n_times;
  };
  struct Words {                            // by index: word i has the node i + 1
    std::vector<uint8_t> bytes;             // all of them
    std::vector<int64_t> begin{0};          // (n_words + 1)
    std::vector<uint8_t> code;              // (n_words) of the bytes; decides the part
    std::vector<uint32_t> of_part[kParts];  // indices of the words of each part
    std::vector<uint32_t> n_texts;          // (n_words) texts that hold it, filled in by finish()
    std::vector<uint64_t> n_times;          // (n_words) occurrences, or empty
  };

  // count_times: also sum up how often each n-gram occurs.
  NgramCounter(const TextOptions& options, bool count_times) : options_(options), count_times_(count_times) {}

  // Counts the n-grams of a text and appends its row to rows[0 .. size).
  void add(const Tokens& tokens, Buffer<Entry>& rows, int64_t& size);

  // Gives the tables back; what was counted stays.
  void finish();

  Words words;
  Pairs pairs[kParts];

 private:
  struct Visitor;
  struct Tally {
    uint16_t seat, n_texts;
  };
  WordSlot<Tally> new_word(const WordKey& key, uint64_t hash, const uint8_t* bytes, int64_t length);
  PairSlot<Tally> new_pair(uint32_t prefix, uint32_t token);
  uint32_t& n_texts(uint32_t id);
  uint64_t& n_times(uint32_t id);

  const TextOptions& options_;
  const bool count_times_;
  Table<WordSlot<Tally>> word_table_;
  Table<PairSlot<Tally>> pair_table_;
  std::unordered_map<uint32_t, uint32_t> carry_;  // n_texts / 2^16 of the nodes where it is not 0
  NgramWalk walk_;
};

}  // namespace lt
