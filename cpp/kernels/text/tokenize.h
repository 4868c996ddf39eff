// Text to tokens, as Python's `str` and `re` see characters and as scikit-learn's analysers cut them.
//
//   word          maximal runs of \w with at least `min_word_length` characters, joined by one space
//   character     every character; runs of two or more \s count as one space
//   char_in_word  every character of " w " for each word w between whitespace; each " w " is a segment of its own
//
// A text is read in place, in the form CPython stores it (1, 2 or 4 bytes a character): nothing is encoded or copied
// first, and lone surrogates are characters like any other. Tokens leave as UTF-8 (surrogates in three bytes), where
// the order of bytes is the order of characters.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

namespace lt {

class TermTree;

struct TextView {
  const void* data = nullptr;
  int64_t length = 0;  // characters
  uint8_t width = 1;   // bytes a character
  bool ascii = true;   // known to hold nothing above 127
};

// What each character becomes: see longtail/features/characters.py for the layout.
struct CharTable {
  static constexpr uint32_t kExpands = 1u << 21, kWord = 1u << 22, kSpace = 1u << 23, kMask = kExpands - 1;
  std::vector<uint16_t> pages;    // (4352) page of each 256 characters
  std::vector<uint32_t> entries;  // (256 * n_pages)
  std::vector<uint32_t> pool;     // expansions

  uint32_t entry(uint32_t code) const { return entries[256 * size_t{pages[code >> 8]} + (code & 255)]; }
  void check() const;  // throws std::invalid_argument unless every reference stays inside the arrays
};

enum class Analyzer { word, character, char_in_word };

struct TextOptions {
  Analyzer analyzer = Analyzer::word;
  int64_t min_n = 1, max_n = 1;          // lengths of the n-grams, in tokens
  int64_t min_word_length = 2;           // characters; shorter words are left out (word analyser)
  bool lowercase = true;                 // what CharTable does to ASCII
  CharTable chars;                       //
  const TermTree* stop_words = nullptr;  // tokens to leave out (word analyser)

  int64_t gap() const { return analyzer == Analyzer::word ? 1 : 0; }  // bytes between the tokens of an n-gram
};

// Growing storage that is neither cleared nor shrunk, for scratch that lives through many texts. Reads of up to
// `kSlack` bytes past what was asked for stay inside it.
template <class T>
class Buffer {
 public:
  static constexpr size_t kSlack = 64;
  Buffer() = default;
  Buffer(Buffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), capacity_(std::exchange(other.capacity_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(capacity_, other.capacity_);
    return *this;
  }
  ~Buffer() { std::free(data_); }

  void reserve(int64_t n) {  // keeps what is there
    if (n > capacity_) grow(n);
  }
  T* data() { return data_; }
  const T* data() const { return data_; }
  T& operator[](int64_t i) { return data_[i]; }
  const T& operator[](int64_t i) const { return data_[i]; }

 private:
  void grow(int64_t n) {
    const int64_t capacity = n + n / 2 + 64;
    void* grown = std::realloc(data_, capacity * sizeof(T) + kSlack);
    if (!grown) throw std::bad_alloc();
    data_ = static_cast<T*>(grown);
    capacity_ = capacity;
  }
  T* data_ = nullptr;
  int64_t capacity_ = 0;
};

// The tokens of one text: token i is text[begin[i] .. begin[i + 1] - gap), so that an n-gram is a range of bytes too.
struct Tokens {
  Buffer<uint8_t> text;
  Buffer<int64_t> begin;  // (n + 1)
  int64_t n = 0;
  Buffer<int64_t> segment;  // (n_segments + 1) first token of each; n-grams stay inside a segment
  int64_t n_segments = 0;

  Buffer<uint8_t> folded;  // scratch
  Buffer<int64_t> edges;   // scratch
};

inline int64_t utf8_length(uint8_t first) { return first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4; }

// Replaces `out` by the tokens of `text`. Throws std::length_error for a text of 2^32 n-grams or more.
void tokenize(const TextView& text, const TextOptions& options, Tokens& out);

// Calls emit(first byte, last byte + 1) for every n-gram, in scikit-learn's order.
template <class Emit>
void for_each_ngram(const Tokens& tokens, const TextOptions& options, Emit&& emit) {
  const int64_t gap = options.gap();
  for (int64_t s = 0; s < tokens.n_segments; ++s) {
    const int64_t first = tokens.segment[s], last = tokens.segment[s + 1], length = last - first;
    for (int64_t n = options.min_n; n <= options.max_n && n <= length; ++n)
      for (int64_t i = first; i + n <= last; ++i) emit(tokens.begin[i], tokens.begin[i + n] - gap);
    // A word too short for any n-gram counts once, as a whole.
    if (options.analyzer == Analyzer::char_in_word && length < options.min_n)
      emit(tokens.begin[first], tokens.begin[last]);
  }
}

}  // namespace lt
