#include "kernels/tfidf_count.h"

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

  template <class Slot>
  void count(Slot& slot) {
    for (uint32_t seat = slot.payload.seat; seat < size; seat += 1 << 16) {
      if (entry_id(row[seat]) != slot.id) continue;
      ++row[seat];
      return;
    }
    slot.payload.seat = static_cast<uint16_t>(size);
    row[size++] = make_entry(slot.id, 1);
    if (++slot.payload.n_texts == 0) ++counter.carry_[slot.id];
  }

  uint32_t word(const WordKey& key, uint64_t hash, const uint8_t* bytes, int64_t length, bool counts) {
    WordSlot<Tally>& slot = words.find(hash, [&](const WordSlot<Tally>& slot) {
      if (slot.key != key) return false;
      const int64_t at = counter.word_begin[slot.id - 1];
      return !key.is_long() ||
             (counter.word_begin[slot.id] - at == length && std::memcmp(&counter.word_bytes[at], bytes, length) == 0);
    });
    if (slot.id == 0) slot = counter.new_word(key, hash, bytes, length);
    if (counts) {
      count(slot);
      if (counter.count_times_) ++counter.word_sums.n_times[slot.id - 1];
    }
    return slot.id;
  }

  uint32_t pair(uint32_t prefix, uint32_t token, uint64_t hash, uint32_t first, bool counts) {
    PairSlot<Tally>& slot = pairs.find(hash, [&](const PairSlot<Tally>& slot) { return slot.is(prefix, token); });
    if (slot.id == 0) slot = counter.new_pair(prefix, token, first);
    if (counts) {
      count(slot);
      if (counter.count_times_) ++counter.pair_sums.n_times[slot.id & ~kPairBit];
    }
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
  const uint32_t index = static_cast<uint32_t>(word_part_.size());
  check_room(index);
  const uint8_t part = hash % kParts;
  word_part_.push_back(part);
  words[part].push_back(index);
  word_bytes.insert(word_bytes.end(), bytes, bytes + length);
  word_begin.push_back(static_cast<int64_t>(word_bytes.size()));
  if (count_times_) word_sums.n_times.push_back(0);
  word_table_.added();
  return {key, index + 1, {}};
}

auto NgramCounter::new_pair(uint32_t prefix, uint32_t token, uint32_t first) -> PairSlot<Tally> {
  check_room(n_pairs_);
  pairs[word_part_[first - 1]].push_back({n_pairs_, prefix, token});
  if (count_times_) pair_sums.n_times.push_back(0);
  pair_table_.added();
  return {prefix, token, kPairBit | n_pairs_++, {}};
}

void NgramCounter::check_room(uint32_t n) {
  if (n >= kPairBit - 1)
    throw std::length_error("2^31 different n-grams or more: use hashing (n_features) or a shorter ngram_range");
}

void NgramCounter::finish() {
  word_sums.n_texts.resize(word_part_.size());
  word_table_.for_each([&](const auto& slot) { word_sums.n_texts[slot.id - 1] = slot.payload.n_texts; });
  word_table_ = {};
  pair_sums.n_texts.resize(n_pairs_);
  pair_table_.for_each([&](const auto& slot) { pair_sums.n_texts[slot.id & ~kPairBit] = slot.payload.n_texts; });
  pair_table_ = {};
  for (const auto& [id, carry] : carry_)
    (id & kPairBit ? pair_sums.n_texts[id & ~kPairBit] : word_sums.n_texts[id - 1]) += carry << 16;
}

}  // namespace lt
