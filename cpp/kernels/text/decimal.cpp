#include "kernels/text/decimal.h"

#include <algorithm>
#include <cfloat>
#include <charconv>
#include <cmath>
#include <limits>
#include <version>

#if !defined(__cpp_lib_to_chars)  // libc++ before LLVM 20 converts integers only
#include <locale.h>
#include <stdlib.h>

#include <cstdio>
#include <string>
#if defined(__APPLE__)
#include <xlocale.h>
#endif
#endif

namespace lt {

namespace {

// The exact conversion of text [p, end), unsigned and within a few orders of magnitude of float32.
// `large` tells on which side a number that is out of range lies.
float exact_float(const char* p, const char* end, bool large) {
#if defined(__cpp_lib_to_chars)
  float value = 0;
  if (std::from_chars(p, end, value).ec == std::errc::result_out_of_range)
    value = large ? std::numeric_limits<float>::infinity() : 0.0f;
  return value;
#else
  (void)large;
  static const locale_t c_locale = newlocale(LC_ALL_MASK, "C", nullptr);  // whose decimal point is a point
  const std::string text(p, end);                                         // whose end is marked
  return strtof_l(text.c_str(), nullptr, c_locale);
#endif
}

}  // namespace

const char* read_float_general(const char* p, float* value) {
  const bool negative = *p == '-';
  if (*p == '-' || *p == '+') ++p;
  const char* start = p;

  // value = digits * 10^exponent, where `digits` holds the first 19 significant ones: what is lost of longer texts is
  // far below the last place of a double.
  constexpr int kHeld = 19;
  uint64_t digits = 0;
  int64_t exponent = 0;
  int held = 0;
  bool any = false;
  for (bool fraction = false;; ++p) {
    const unsigned digit = static_cast<unsigned char>(*p) - '0';
    if (digit <= 9) {
      any = true;
      if (held < kHeld) {
        digits = digits * 10 + digit;
        held += digits != 0;
        exponent -= fraction;
      } else {
        exponent += !fraction;
      }
    } else if (*p == '.' && !fraction) {
      fraction = true;
    } else {
      break;
    }
  }
  if (!any) return nullptr;

  if (*p == 'e' || *p == 'E') {
    ++p;
    const bool down = *p == '-';
    if (*p == '-' || *p == '+') ++p;
    int64_t power = 0;
    const char* power_start = p;
    for (; is_digit(*p); ++p)
      power = std::min<int64_t>(power * 10 + (*p - '0'), int64_t{1} << 50);  // enough to dwarf any text
    if (p == power_start) return nullptr;
    exponent += down ? -power : power;
  }

  float magnitude;
  const int64_t order = exponent + held;  // 10^(order - 1) <= value < 10^order
  if (digits == 0 || order < -45) {
    magnitude = 0;  // below 10^-46, and so below half of the smallest float
  } else if (order > 39) {
    magnitude = std::numeric_limits<float>::infinity();
  } else {
    double close = 0;  // outside of the normal range, unless computed
    if (exponent >= -22 && exponent <= 22)
      close = exponent < 0 ? static_cast<double>(digits) / kPowersOfTen[-exponent]
                           : static_cast<double>(digits) * kPowersOfTen[exponent];
    magnitude = close > FLT_MIN && close < FLT_MAX && !near_midpoint(close) ? static_cast<float>(close)
                                                                            : exact_float(start, p, order > 0);
  }
  *value = negative ? -magnitude : magnitude;
  return p;
}

const char* read_float_long(const char* p, float* value) {
  if (*p == '-') {
    int length = 1;
    if (const char* end = read_float_short(p + 1, value, length)) {
      *value = -*value;
      return end;
    }
  }
  p = read_float_general(p, value);
  return p && std::isfinite(*value) ? p : nullptr;
}

char* write_float(char* out, float value) {
#if defined(__cpp_lib_to_chars)
  return std::to_chars(out, out + kFloatText, value).ptr;
#else
  for (int precision = 6;; ++precision) {  // nine digits always suffice
    const int length = std::snprintf(out, kFloatText, "%.*g", precision, value);
    std::replace(out, out + length, ',', '.');  // the decimal point of some locales
    out[length] = '\n';
    float back;
    if (precision == 9 || (read_float_general(out, &back) && back == value)) return out + length;
  }
#endif
}

}  // namespace lt
