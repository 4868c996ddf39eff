// Decisions that are linear in the probability: row i answers with the k labels of largest a_j * eta_ij + b_j.
//
// Several such rules may stand side by side (a randomised classifier), one of them chosen for each row.
#pragma once

#include <cstdint>

#include "kernels/base/parallel.h"
#include "kernels/base/views.h"

namespace lt {

struct LinearRules {
  int64_t n_rules = 0;
  const double* a = nullptr;         // (n_rules, n_cols)
  const double* b = nullptr;         // (n_rules, n_cols)
  const int32_t* rule_of = nullptr;  // (n_rows), or null: all rows use rule 0
  const uint8_t* allowed = nullptr;  // (n_cols), or null: labels that may fill a row beside its candidates
  int64_t k = 1;                     // slots a row
  bool exactly = true;               // fill all k slots, if need be with labels that are no candidates (eta = 0);
                                     // otherwise only labels with a positive gain are named
  bool candidates_only = false;      // never name a label that is no candidate
  bool by_probability = false;       // order and score by eta instead of by gain
};

struct DecisionOut {
  int32_t* ids = nullptr;   // (n_rows, k), -1 in empty slots
  float* scores = nullptr;  // (n_rows, k), -inf in empty slots; or null
  float* hits = nullptr;    // (n_rows, k), or null: value of the label in `truth`, 0 where it is not stored
};

// Rows of `eta` need not be sorted; rows of `truth` (null: unknown) must be.
bool linear_decision(const CsrView& eta, const LinearRules& rules, const CsrView* truth, int n_threads,
                     const DecisionOut& out, const Poll& poll = {});

// How often each label is named under these rules, and with what sum of values in `truth`: q and t (n_cols), zero
// before the call. Summed row by row, whatever the number of threads.
bool linear_counts(const CsrView& eta, const LinearRules& rules, const CsrView& truth, int n_threads, double* t,
                   double* q, const Poll& poll = {});

}  // namespace lt
