#include "kernels/tfidf_count.h"

#include <algorithm>
#include <stdexcept>

namespace lt {

uint32_t NgramCounter::new_node(uint8_t part) {
  if (n_texts.size() >= UINT32_MAX)
    throw std::length_error("more than 2^32 - 2 different n-grams: use hashing (n_features) or a shorter ngram_range");
  n_texts.push_back(0);
  if (count_times_) n_times.push_back(0);
  part_.push_back(part);
  return static_cast<uint32_t>(n_texts.size() - 1);
}

inline void NgramCounter::count(uint32_t id, uint32_t& seat) {
  if (seat < row_size_ && entry_id(row_[seat]) == id) {
    ++row_[seat];
  } else {
    seat = row_size_;
    row_[row_size_++] = make_entry(id, 1);
    ++n_texts[id];
  }
  if (count_times_) ++n_times[id];
}

void NgramCounter::add(const Tokens& tokens, Buffer<Entry>& rows, int64_t& size) {
  rows_ = &rows;
  begin_ = size;
  row_size_ = 0;
  ids_.reserve(tokens.n);
  nodes_.reserve(tokens.n);
  count_words(tokens);
  int64_t longest = 0;
  for (int64_t s = 0; s < tokens.n_segments; ++s)
    longest = std::max(longest, tokens.segment[s + 1] - tokens.segment[s]);
  for (int64_t n = 2; n <= std::min(options_.max_n, longest); ++n) count_pairs(tokens, n);
  size += row_size_;
}

void NgramCounter::count_words(const Tokens& tokens) {
  const bool counts = options_.min_n == 1;
  const int64_t gap = options_.gap();
  WordKey keys[kBatch];
  uint64_t hashes[kBatch];
  for (int64_t start = 0; start < tokens.n; start += kBatch) {
    const int64_t m = std::min(kBatch, tokens.n - start);
    rows_->reserve(begin_ + row_size_ + m);
    row_ = rows_->data() + begin_;
    word_table_.reserve(m);
    const int64_t* begin = tokens.begin.data() + start;
    for (int64_t j = 0; j < m; ++j) {
      keys[j] = WordKey::of(tokens.text.data() + begin[j], begin[j + 1] - gap - begin[j]);
      hashes[j] = keys[j].hash();
      word_table_.prefetch(hashes[j]);
    }
    for (int64_t j = 0; j < m; ++j) {
      const uint8_t* bytes = tokens.text.data() + begin[j];
      const int64_t length = begin[j + 1] - gap - begin[j];
      WordSlot& slot = word_table_.find(hashes[j], [&](const WordSlot& slot) {
        if (slot.key != keys[j]) return false;
        return !slot.key.is_long() || (word_begin[slot.word + 1] - word_begin[slot.word] == length &&
                                       std::memcmp(&word_bytes[word_begin[slot.word]], bytes, length) == 0);
      });
      if (slot.id == 0) {
        const uint8_t part = hashes[j] % kParts;
        const uint32_t word = static_cast<uint32_t>(word_begin.size() - 1);
        slot = {keys[j], new_node(part), 0, word, 0};
        word_bytes.insert(word_bytes.end(), bytes, bytes + length);
        word_begin.push_back(static_cast<int64_t>(word_bytes.size()));
        words[part].push_back({slot.id, word});
        word_table_.added();
      }
      ids_[start + j] = nodes_[start + j] = slot.id;
      if (counts) count(slot.id, slot.seat);
    }
  }
}

// Extends the n-grams of n - 1 tokens by one token.
void NgramCounter::count_pairs(const Tokens& tokens, int64_t n) {
  Position positions[kBatch];
  int64_t m = 0;
  for (int64_t s = 0; s < tokens.n_segments; ++s) {
    const int64_t first = tokens.segment[s], last = tokens.segment[s + 1];
    // A word that is too short for any n-gram counts as a whole: see for_each_ngram.
    const bool counts = n >= options_.min_n || (options_.analyzer == Analyzer::char_in_word && last - first == n);
    for (int64_t i = first; i + n <= last; ++i) {
      positions[m++] = {i, counts};
      if (m == kBatch) {
        flush(positions, m, n);
        m = 0;
      }
    }
  }
  flush(positions, m, n);
}

void NgramCounter::flush(const Position* positions, int64_t m, int64_t n) {
  rows_->reserve(begin_ + row_size_ + m);
  row_ = rows_->data() + begin_;
  pair_table_.reserve(m);
  uint64_t hashes[kBatch];
  for (int64_t j = 0; j < m; ++j) {
    const int64_t i = positions[j].at;
    hashes[j] = PairSlot::hash(nodes_[i], ids_[i + n - 1]);
    pair_table_.prefetch(hashes[j]);
  }
  for (int64_t j = 0; j < m; ++j) {
    const int64_t i = positions[j].at;
    const uint32_t prefix = nodes_[i], token = ids_[i + n - 1];
    PairSlot& slot =
        pair_table_.find(hashes[j], [&](const PairSlot& slot) { return slot.prefix == prefix && slot.token == token; });
    if (slot.id == 0) {
      const uint8_t part = part_[prefix];
      slot = {prefix, token, new_node(part), 0};
      pairs[part].push_back({slot.id, prefix, token});
      pair_table_.added();
    }
    nodes_[i] = slot.id;
    if (positions[j].counts) count(slot.id, slot.seat);
  }
}

void NgramCounter::finish() {
  word_table_.free();
  pair_table_.free();
}

}  // namespace lt
