// Decides row after row as they arrive, with the confusion counts of the rows so far: one step of block ascent per row,
// never revised. State is (n_labels) arrays of t, q and p, see label_utility.h; a new row counts with weight `weight`.
#pragma once

#include <cstdint>

#include "kernels/base/views.h"
#include "kernels/decide/block_ascent.h"

namespace lt {

struct OnlineState {
  double* t = nullptr;  // (n_labels) expected or observed true positives
  double* q = nullptr;  // (n_labels) times named
  double* p = nullptr;  // (n_labels) expected or observed positives
  double n_rows = 0.0;  // weight of the rows so far
};

// Names at most k candidates of every row of `eta`, in order, and counts each row before the next is decided. `growth`
// (at least 1) multiplies the weight of each next row, so that older rows fade. Returns the weight of all rows.
double online_decision(const CsrView& eta, const AscentSettings& settings, double precision_weight, double weight,
                       double growth, OnlineState state, int32_t* ids, float* etas);

}  // namespace lt
