// A vocabulary from counts: texts that do not fit into memory are counted a shard at a time, each shard's terms are
// kept sorted (in files that are mapped), and one pass over all of them gives what a fit on all texts would have given.
//
//   shard 0   a·3  b·1  tail·2 ─┐
//   shard 1   a·1  long·4  tail ─┼─ smallest first ─▶ a·4  b·1  long·4  tail·3 ─ pruning ─▶ terms, weights
//   shard 2   long·2            ─┘
//
// What is held is the vocabulary that stays, and one position per shard.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/base/parallel.h"
#include "kernels/text/tfidf.h"

namespace lt {

// What one shard counted. Terms ascend by their bytes; in hashing mode there are ascending columns in their place.
struct TermCounts {
  TermsView terms;                    // of n terms, or none in hashing mode
  const int32_t* columns = nullptr;   // (n), or null
  const uint32_t* n_texts = nullptr;  // (n) texts of the shard that hold it
  const uint64_t* n_times = nullptr;  // (n), or null
  int64_t n = 0;
};

// The fit on all texts, `n_texts` in number, without rows. Throws std::invalid_argument if the terms of a shard do not
// ascend, or if terms are to be ranked (pruning.max_terms) by times that a shard does not have.
TfidfFit merge_counts(const std::vector<TermCounts>& shards, int64_t n_texts, const TfidfFitOptions& fit,
                      const Poll& poll);

}  // namespace lt
