// What the readers of line-based text formats share: positions for error messages, blanks, whole numbers.
//
// Every line ends with '\n', which stops every scan; kTextPadding bytes behind the last line may be read.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>

#include "kernels/text/decimal.h"

namespace lt {

// A place where a text breaks its grammar; line and column count from 1, columns in bytes.
struct TextError {
  int64_t line = 0;
  int64_t column = 0;
  std::string message;
};

// Thrown within a scan; whoever knows the line number turns it into a TextError.
struct ScanFailure {
  const char* at;
  std::string message;
};

[[noreturn]] inline void scan_failed(const char* at, std::string message) { throw ScanFailure{at, std::move(message)}; }

inline bool is_blank(char c) { return c == ' ' || c == '\t'; }

inline const char* skip_blanks(const char* p) {
  while (is_blank(*p)) ++p;
  return p;
}

// The line end is "\n" or "\r\n".
inline bool at_line_end(const char* p) { return *p == '\n' || (*p == '\r' && p[1] == '\n'); }

// Start of the line after the one that p is in; the text ends at `end`, and so does its last line.
inline const char* line_after(const char* p, const char* end) {
  return static_cast<const char*>(std::memchr(p, '\n', end - p)) + 1;
}

// How to name the byte at p in a message.
inline std::string found_at(const char* p) {
  const auto c = static_cast<unsigned char>(*p);
  if (at_line_end(p)) return "the end of the line";
  if (c > ' ' && c < 0x7F) return std::string("'") + *p + "'";
  if (c == ' ') return "a space";
  static const char* hex = "0123456789ABCDEF";
  return std::string("the byte 0x") + hex[c >> 4] + hex[c & 15];
}

// How to name the text at p up to the next blank.
inline std::string word_at(const char* p) {
  constexpr int kShown = 24;
  int n = 0;
  while (n < kShown && p[n] > ' ' && p[n] < 0x7F) ++n;
  return n == 0 ? found_at(p) : std::string("'").append(p, n).append(n == kShown ? "...'" : "'");
}

// The whole number at p; p comes back unmoved if there is none. What does not fit is held at UINT32_MAX, above every
// limit in use. `length`, kept from one number to the next, is the guess for the number of digits.
inline const char* read_index(const char* p, uint32_t* value, int& length) {
  const EightBytes bytes = eight_bytes(p);
  guess_length(bytes.count, length);
  if (length == 0) return p;
  *value = first_digits(bytes.digits, length);
  p += length;
  if (length == 8) {
    uint64_t wide = *value;
    for (; is_digit(*p); ++p) wide = wide > UINT32_MAX ? wide : wide * 10 + (*p - '0');
    *value = static_cast<uint32_t>(wide > UINT32_MAX ? UINT32_MAX : wide);
  }
  return p;
}

}  // namespace lt
