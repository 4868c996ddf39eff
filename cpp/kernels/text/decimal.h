// Decimal text to float32 and back, exactly.
//
//   number = [ "+" | "-" ] ( digits [ "." [ digits ] ] | "." digits ) [ ( "e" | "E" ) [ "+" | "-" ] digits ]
//
// Reading rounds to the nearest float32, ties to even. The short way: digits w (an integer) and a power of ten p =
// 10^e, |e| <= 22, are turned into the double w * p or w / p, which is off by at most two units in its last place;
// rounding that double to float32 is right unless it lies that close to the midpoint of two floats. Only then, and for
// numbers outside the normal range of float32, is the exact and slower conversion of the standard library needed.
//
// What limits the speed is not arithmetic: a number can be read only where the one before it ends. So readers guess
// that a number is as long as its counterpart in the entry before; a processor that predicts branches then starts on
// the next number before the length of this one is known (see `guess_length`).
//
// Text is read without a bound: it must end with a byte that no number contains (the line end), followed by
// kTextPadding readable bytes.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

namespace lt {

inline constexpr int64_t kTextPadding = 32;  // bytes behind a text that may be read, and mean nothing

inline bool is_digit(char c) { return static_cast<unsigned char>(c - '0') <= 9; }

// Eight bytes of text, seen as digits.
struct EightBytes {
  uint64_t digits;  // byte i holds the i-th digit, 0 .. 9
  int count;        // how many bytes, from the first on, are digits
};

inline EightBytes eight_bytes(const char* p) {
  uint64_t bytes;
  std::memcpy(&bytes, p, 8);
  if constexpr (std::endian::native == std::endian::big) bytes = __builtin_bswap64(bytes);
  const uint64_t digits = bytes ^ 0x3030303030303030u;  // '0' .. '9' become 0 .. 9
  // The high bit of a byte is set if the byte is above 9; a carry can only disturb bytes behind the first such one.
  const uint64_t others = ((digits + 0x7676767676767676u) | digits) & 0x8080808080808080u;
  return {digits, others ? std::countr_zero(others) >> 3 : 8};
}

// The number that the first `count` (1 .. 8) digits form.
inline uint32_t first_digits(uint64_t digits, int count) {
  uint64_t d = digits << (64 - 8 * count);  // zeros, then the digits
  d = d * 10 + (d >> 8);                    // every other byte: two digits
  constexpr uint64_t kMask = 0x000000FF000000FFu;
  return static_cast<uint32_t>(((d & kMask) * 0x000F424000000064u + ((d >> 16) & kMask) * 0x0000271000000001u) >> 32);
}

// Sets guess to count by way of a branch, not of data: when the guess was right, what follows need not wait for count.
inline void guess_length(int count, int& guess) {
  if (count != guess) {
    guess = count;
    asm volatile("" : "+r"(guess));  // else the compiler sees that both ways are guess = count
  }
}

inline constexpr double kPowersOfTen[23] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                            1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

// True if `value`, known to within four units in its last place, is too close to a midpoint of two floats to be
// rounded.
inline bool near_midpoint(double value) {
  return ((std::bit_cast<uint64_t>(value) + 4) & 0x1FFFFFFFu) - 0x10000000u <= 8;
}

// Any number of the grammar above. Returns where it ends, or null if there is none. What is too large is +-infinity.
const char* read_float_general(const char* p, float* value);

// The short forms: up to seven digits, or those and a point and one to seven digits. Null if it is none of them.
inline const char* read_float_short(const char* p, float* value, int& length) {
  uint32_t whole = static_cast<unsigned char>(*p - '0');
  if (whole > 9) return nullptr;
  ++p;
  if (is_digit(*p)) {  // mostly not: weights are below 1, and counts below 10
    const EightBytes bytes = eight_bytes(p);
    if (bytes.count > 6) return nullptr;
    static constexpr uint32_t kShift[7] = {1, 10, 100, 1000, 10000, 100000, 1000000};
    whole = whole * kShift[bytes.count] + first_digits(bytes.digits, bytes.count);
    p += bytes.count;
  }
  if (*p == '.') {
    const EightBytes bytes = eight_bytes(p + 1);
    guess_length(bytes.count, length);
    if (length - 1u > 6u) return nullptr;
    static constexpr int64_t kShift[8] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000};
    const int64_t digits = whole * kShift[length] + first_digits(bytes.digits, length);
    static constexpr double kScale[8] = {1, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7};  // quicker than a division
    const double product = static_cast<double>(digits) * kScale[length];
    if (near_midpoint(product)) return nullptr;
    *value = static_cast<float>(product);
    p += 1 + length;
  } else {
    *value = static_cast<float>(static_cast<int32_t>(whole));  // below 10^7, and so exact
  }
  return static_cast<unsigned char>(*p) > ' ' ? nullptr : p;  // perhaps an exponent
}

// The forms that are not short: a sign, an exponent, many digits. Null as for read_float.
const char* read_float_long(const char* p, float* value);

// Any finite number; null if there is none, or if it is too large for float32. `length`, kept from one number to the
// next, is the guess for the number of digits behind the point.
inline const char* read_float(const char* p, float* value, int& length) {
  const char* end = read_float_short(p, value, length);
  return end ? end : read_float_long(p, value);
}

inline constexpr int kFloatText = 24;  // the longest text of write_float fits

// The shortest text that reads back as the same finite float. Returns the end of the text.
char* write_float(char* out, float value);

}  // namespace lt
