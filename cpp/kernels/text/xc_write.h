// Compressed sparse rows to the extreme-classification text formats; the inverse of xc_parse.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/base/growing.h"
#include "kernels/base/views.h"

namespace lt {

// Appends one line for each row in [begin, end): with labels, "l1,l2 i:v i:v"; without (null), "i:v i:v".
void xc_write_rows(const CsrView* labels, const CsrView& entries, int64_t begin, int64_t end, GrowingArray<char>& out);

// The same lines in parts, written side by side; their texts in order are that of all rows.
std::vector<GrowingArray<char>> xc_write_parts(const CsrView* labels, const CsrView& entries, int64_t begin,
                                               int64_t end, int n_threads);

}  // namespace lt
