// One row of the extreme-classification text formats (internal to xc_parse).
#pragma once

#include "kernels/text/xc_parse.h"

namespace lt {

// Parses the line at p and appends its row; returns the start of the next line. `rows` has room for whatever the line
// may hold. Throws ScanFailure.
const char* xc_parse_row(const XcSpec& spec, XcRows& rows, const char* p);

}  // namespace lt
