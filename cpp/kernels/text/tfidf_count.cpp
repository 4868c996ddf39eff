#include "kernels/text/tfidf_count.h"

#include <stdexcept>

namespace lt {

// Finds or makes the nodes of one text and counts them into its row.
struct NgramCounter::Visitor {
  NgramCounter& counter;
  Buffer<Entry>& rows;
  const int64_t begin;
  Entry* row = nullptr;
  uint32_t size = 0;
  Table<WordSlot<Tally>>& words = counter.word_table_;
  Table<PairSlot<Tally>>& pairs = counter.pair_table_;

  void before(int64_t m) {
    rows.reserve(begin + size + m);
    row = rows.data() + begin;
  }
  void before_words(int64_t m) {
    before(m);
    words.reserve(m);
  }
  void before_pairs(int64_t m) {
    before(m);
    pairs.reserve(m);
  }

  // Written without a branch on whether the node was met before, which no processor can foresee.
  template <class Slot>
  void count(Slot& slot) {
    uint32_t seat = std::min<uint32_t>(slot.payload.seat, size);
    while (seat + (1 << 16) < size && entry_id(row[seat]) != slot.id) seat += 1 << 16;
    const bool met = seat < size && entry_id(row[seat]) == slot.id;
    seat = met ? seat : size;
    row[seat] = met ? row[seat] + 1 : make_entry(slot.id, 1);
    size += !met;
    slot.payload.seat = static_cast<uint16_t>(seat);
    slot.payload.n_texts += !met;
    if (slot.payload.n_texts == 0 && !met) ++counter.carry_[slot.id];
    if (counter.count_times_) ++counter.n_times(slot.id);
  }

  uint32_t word(const WordKey& key, uint64_t hash, const uint8_t* bytes, int64_t length, bool counts) {
    const Words& known = counter.words;
    WordSlot<Tally>& slot = words.find(hash, [&](const WordSlot<Tally>& slot) {
      if (slot.key != key) return false;
      const int64_t at = known.begin[slot.id - 1];
      return !key.is_long() ||
             (known.begin[slot.id] - at == length && std::memcmp(&known.bytes[at], bytes, length) == 0);
    });
    if (slot.id == 0) slot = counter.new_word(key, hash, bytes, length);
    if (counts) count(slot);
    return slot.id;
  }

  uint32_t pair(uint32_t prefix, uint32_t token, uint64_t hash, bool counts) {
    PairSlot<Tally>& slot = pairs.find(hash, [&](const PairSlot<Tally>& slot) { return slot.is(prefix, token); });
    if (slot.id == 0) slot = counter.new_pair(prefix, token);
    if (counts) count(slot);
    return slot.id;
  }
};

void NgramCounter::add(const Tokens& tokens, Buffer<Entry>& rows, int64_t& size) {
  Visitor visitor{*this, rows, size};
  walk_.run(tokens, options_, visitor);
  size += visitor.size;
}

auto NgramCounter::new_word(const WordKey& key, uint64_t hash, const uint8_t* bytes, int64_t length)
    -> WordSlot<Tally> {
  const uint32_t index = static_cast<uint32_t>(words.code.size());
  if (index >= kPairBit - 1) throw std::length_error("2^31 different tokens: use hashing (n_features)");
  words.code.push_back(static_cast<uint8_t>(hash));
  words.of_part[hash % kParts].push_back(index);
  words.bytes.insert(words.bytes.end(), bytes, bytes + length);
  words.begin.push_back(static_cast<int64_t>(words.bytes.size()));
  if (count_times_) words.n_times.push_back(0);
  word_table_.added();
  return {key, index + 1, {}};
}

auto NgramCounter::new_pair(uint32_t prefix, uint32_t token) -> PairSlot<Tally> {
  const uint32_t part =
      prefix & kPairBit ? pair_part(prefix) : (words.code[prefix - 1] + 3 * words.code[token - 1]) % kParts;
  const size_t index = pairs[part].nodes.size();
  if (index >= 1u << kIndexBits)
    throw std::length_error("too many different n-grams: use hashing (n_features) or a shorter ngram_range");
  pairs[part].nodes.push_back({prefix, token});
  if (count_times_) pairs[part].n_times.push_back(0);
  pair_table_.added();
  return {prefix, token, pair_id(part, static_cast<uint32_t>(index)), {}};
}

uint32_t& NgramCounter::n_texts(uint32_t id) {
  return id & kPairBit ? pairs[pair_part(id)].n_texts[pair_index(id)] : words.n_texts[id - 1];
}

uint64_t& NgramCounter::n_times(uint32_t id) {
  return id & kPairBit ? pairs[pair_part(id)].n_times[pair_index(id)] : words.n_times[id - 1];
}

void NgramCounter::finish() {
  words.n_texts.resize(words.code.size());
  for (Pairs& part : pairs) part.n_texts.resize(part.nodes.size());
  const auto take = [&](const auto& slot) { n_texts(slot.id) = slot.payload.n_texts; };
  word_table_.for_each(take);
  word_table_ = {};
  pair_table_.for_each(take);
  pair_table_ = {};
  for (const auto& [id, carry] : carry_) n_texts(id) += carry << 16;
}

}  // namespace lt
