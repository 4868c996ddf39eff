// Lines of two whole numbers, `row label`: the filter-pair files of the label-feature benchmarks.
#pragma once

#include <cstdint>
#include <optional>

#include "kernels/base/growing.h"
#include "kernels/text/text_scan.h"

namespace lt {

struct PairLines {
  int64_t n_rows = INT32_MAX;    // the first number of a pair is below this
  int64_t n_labels = INT32_MAX;  // and the second below this
  int64_t line = 1;              // number of the next line
  GrowingArray<int64_t> pairs;   // (m, 2)
};

// Appends the pairs of text [begin, end), under the conditions of xc_parse. Blank lines are skipped.
std::optional<TextError> parse_pair_lines(PairLines& result, const char* begin, const char* end);

}  // namespace lt
