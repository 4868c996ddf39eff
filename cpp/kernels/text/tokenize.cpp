#include "kernels/text/tokenize.h"

#include <algorithm>
#include <bit>
#include <stdexcept>

#include "kernels/text/tfidf_hash.h"
#include "kernels/text/tfidf_terms.h"

namespace lt {

namespace {

constexpr uint8_t kBlank = ' ';

// The longest expansion known is 18 characters; CharTable::check holds it to this.
constexpr int64_t kMaxExpansion = 32, kMaxBytes = 4 * kMaxExpansion;

uint8_t* put_utf8(uint8_t* out, uint32_t c) {
  if (c < 0x80) {
    *out++ = static_cast<uint8_t>(c);
  } else if (c < 0x800) {
    *out++ = static_cast<uint8_t>(0xC0 | (c >> 6));
    *out++ = static_cast<uint8_t>(0x80 | (c & 63));
  } else if (c < 0x10000) {
    *out++ = static_cast<uint8_t>(0xE0 | (c >> 12));
    *out++ = static_cast<uint8_t>(0x80 | ((c >> 6) & 63));
    *out++ = static_cast<uint8_t>(0x80 | (c & 63));
  } else {
    *out++ = static_cast<uint8_t>(0xF0 | (c >> 18));
    *out++ = static_cast<uint8_t>(0x80 | ((c >> 12) & 63));
    *out++ = static_cast<uint8_t>(0x80 | ((c >> 6) & 63));
    *out++ = static_cast<uint8_t>(0x80 | (c & 63));
  }
  return out;
}

// Calls put(character, flags) for what `code` becomes.
template <class Put>
inline void fold_one(uint32_t code, const CharTable& table, Put&& put) {
  const uint32_t entry = table.entry(code);
  if (!(entry & CharTable::kExpands)) {
    put((code + entry) & CharTable::kMask, entry);
    return;
  }
  const uint32_t* item = table.pool.data() + (entry & CharTable::kMask);
  for (uint32_t left = *item++; left > 0; --left, ++item) put(*item & CharTable::kMask, *item);
}

// ASCII in steps that the compiler turns into vector code: word characters folded, everything else blank.
template <class Char>
inline void fold_ascii(const Char* in, int64_t n, uint8_t case_bit, uint8_t* out) {
  for (int64_t i = 0; i < n; ++i) {
    uint8_t c = static_cast<uint8_t>(in[i]);
    c |= static_cast<uint8_t>(c - 'A') < 26 ? case_bit : 0;
    const bool letter = static_cast<uint8_t>((c | 0x20) - 'a') < 26;
    const bool digit = static_cast<uint8_t>(c - '0') < 10;
    out[i] = letter | digit | (c == '_') ? c : kBlank;
  }
}

template <class Char>
bool all_ascii(const Char* in, int64_t n) {
  uint32_t seen = 0;
  for (int64_t i = 0; i < n; ++i) seen |= in[i];
  return seen < 0x80;
}

// Words folded to UTF-8 with blanks for everything between them. Returns the number of bytes.
template <class Char>
int64_t fold_words(const TextView& text, const TextOptions& options, Buffer<uint8_t>& out) {
  constexpr int64_t kStep = 16;
  const Char* in = static_cast<const Char*>(text.data);
  const uint8_t case_bit = options.lowercase ? 0x20 : 0;
  if (text.ascii) {
    out.reserve(text.length);
    fold_ascii(in, text.length, case_bit, out.data());
    return text.length;
  }
  int64_t size = 0, i = 0;
  while (i < text.length) {
    const int64_t step = std::min(kStep, text.length - i);
    out.reserve(size + kStep * kMaxBytes);
    if (step == kStep && all_ascii(in + i, kStep)) {
      fold_ascii(in + i, kStep, case_bit, out.data() + size);
      size += kStep;
    } else {
      uint8_t* end = out.data() + size;
      for (int64_t j = i; j < i + step; ++j)
        fold_one(in[j], options.chars, [&](uint32_t c, uint32_t flags) {
          if (flags & CharTable::kWord) {
            end = put_utf8(end, c);
          } else {
            *end++ = kBlank;
          }
        });
      size = end - out.data();
    }
    i += step;
  }
  return size;
}

// Bit i is set where byte i is not blank.
uint64_t word_mask(const uint8_t* bytes) {
  constexpr uint64_t kBlanks = 0x2020202020202020, kLow = 0x7F7F7F7F7F7F7F7F;
  uint64_t mask = 0;
  for (int part = 0; part < 8; ++part) {
    const uint64_t x = load64(bytes + 8 * part) ^ kBlanks;
    const uint64_t set = (((x & kLow) + kLow) | x) & ~kLow;  // high bit of each byte that is not zero
    mask |= (((set >> 7) * 0x0102040810204080) >> 56) << (8 * part);
  }
  return mask;
}

// Where words begin and end, alternately. Returns how many positions there are (an even number).
int64_t find_edges(Buffer<uint8_t>& bytes, int64_t size, Buffer<int64_t>& edges) {
  bytes.reserve(size + 64);
  std::memset(bytes.data() + size, kBlank, 64);  // the last word ends before the text does
  int64_t n = 0;
  uint64_t before = 0;
  for (int64_t start = 0; start <= size; start += 64) {
    edges.reserve(n + 64);
    const uint64_t mask = word_mask(bytes.data() + start);
    uint64_t changes = mask ^ (mask << 1 | before);
    before = mask >> 63;
    int64_t* out = edges.data() + n;
    for (; changes; changes &= changes - 1) *out++ = start + std::countr_zero(changes);
    n = out - edges.data();
  }
  return n;
}

// Whether a word in UTF-8 has at least `wanted` characters.
bool has_characters(const uint8_t* word, int64_t length, int64_t wanted) {
  if (wanted <= 1 || length >= 4 * wanted) return true;
  for (int64_t at = 0; at < length; at += utf8_length(word[at]))
    if (--wanted == 0) return true;
  return false;
}

void words(const TextView& text, const TextOptions& options, Tokens& out) {
  const int64_t size = text.width == 1   ? fold_words<uint8_t>(text, options, out.folded)
                       : text.width == 2 ? fold_words<uint16_t>(text, options, out.folded)
                                         : fold_words<uint32_t>(text, options, out.folded);
  const int64_t n_edges = find_edges(out.folded, size, out.edges);
  out.text.reserve(size + n_edges + 64);
  out.begin.reserve(n_edges / 2 + 1);
  const uint8_t* bytes = out.folded.data();
  const int64_t* edges = out.edges.data();
  int64_t* begins = out.begin.data();
  uint8_t* joined = out.text.data();
  int64_t n = 0, end = 0;
  for (int64_t e = 0; e < n_edges; e += 2) {
    const uint8_t* word = bytes + edges[e];
    const int64_t length = edges[e + 1] - edges[e];
    if (!has_characters(word, length, options.min_word_length)) continue;
    if (options.stop_words && options.stop_words->find_token(word, length) != TermTree::kNone) continue;
    uint8_t* to = joined + end;
    std::memcpy(to, word, 16);  // most words are shorter: one fixed copy is cheaper than the exact one
    if (length > 16) std::memcpy(to + 16, word + 16, length - 16);
    to[length] = ' ';
    begins[n++] = end;
    end += length + 1;
  }
  begins[n] = end;
  out.n = n;
}

void push_character(Tokens& out, int64_t& end, uint32_t c) {
  out.begin.reserve(out.n + 2);
  out.text.reserve(end + 4);
  out.begin[out.n++] = end;
  end = put_utf8(out.text.data() + end, c) - out.text.data();
}

// All characters. A run of whitespace becomes one space, except that a single whitespace character stays what it is.
template <class Char>
void characters(const TextView& text, const TextOptions& options, Tokens& out) {
  const Char* in = static_cast<const Char*>(text.data);
  int64_t end = 0, run = 0;  // run: whitespace characters just before
  for (int64_t i = 0; i < text.length; ++i)
    fold_one(in[i], options.chars, [&](uint32_t c, uint32_t flags) {
      run = flags & CharTable::kSpace ? run + 1 : 0;
      if (run <= 1) {
        push_character(out, end, c);
      } else if (run == 2) {
        end = out.begin[--out.n];
        push_character(out, end, ' ');
      }
    });
  out.begin.reserve(out.n + 1);
  out.begin[out.n] = end;
}

// The characters of " w " for every word w between whitespace.
template <class Char>
void characters_in_words(const TextView& text, const TextOptions& options, Tokens& out) {
  const Char* in = static_cast<const Char*>(text.data);
  int64_t end = 0;
  bool inside = false;
  const auto close = [&] {
    if (inside) push_character(out, end, ' ');
    inside = false;
  };
  for (int64_t i = 0; i < text.length; ++i)
    fold_one(in[i], options.chars, [&](uint32_t c, uint32_t flags) {
      if (flags & CharTable::kSpace) return close();
      if (!inside) {
        out.segment.reserve(out.n_segments + 2);
        out.segment[out.n_segments++] = out.n;
        push_character(out, end, ' ');
        inside = true;
      }
      push_character(out, end, c);
    });
  close();
  out.begin.reserve(out.n + 1);
  out.begin[out.n] = end;
}

}  // namespace

void CharTable::check() const {
  const auto require = [](bool condition) {
    if (!condition) throw std::invalid_argument("damaged character table");
  };
  require(pages.size() == 0x110000 / 256 && entries.size() % 256 == 0);
  for (const uint16_t page : pages) require(page < entries.size() / 256);
  for (const uint32_t entry : entries) {
    if (!(entry & kExpands)) continue;
    const size_t at = entry & kMask;
    require(at < pool.size() && pool[at] <= kMaxExpansion && at + pool[at] < pool.size());
  }
}

void tokenize(const TextView& text, const TextOptions& options, Tokens& out) {
  out.n = out.n_segments = 0;
  out.segment.reserve(2);
  const auto each_width = [&](auto one, auto two, auto four) {
    text.width == 1 ? one(text, options, out) : text.width == 2 ? two(text, options, out) : four(text, options, out);
  };
  switch (options.analyzer) {
    case Analyzer::word:
      words(text, options, out);
      break;
    case Analyzer::character:
      each_width(characters<uint8_t>, characters<uint16_t>, characters<uint32_t>);
      break;
    case Analyzer::char_in_word:
      each_width(characters_in_words<uint8_t>, characters_in_words<uint16_t>, characters_in_words<uint32_t>);
      break;
  }
  if (options.analyzer != Analyzer::char_in_word) out.segment[out.n_segments++] = 0;
  out.segment[out.n_segments] = out.n;
  if (out.n * std::min(options.max_n, out.n) >= int64_t{UINT32_MAX})
    throw std::length_error("a text has 2^32 n-grams or more: cut it into smaller texts");
}

}  // namespace lt
