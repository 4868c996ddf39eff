// Texts to tf-idf rows.
//
// Fitting reads every text once. Workers count n-grams under numbers of their own and keep each text's row as pairs
// (number, times); the counters are merged, terms pruned and ordered, and the rows rewritten with the columns that the
// numbers turned out to be. What is held is the rows and the vocabulary, never the tokens.
//
//   texts ─ tokenize ─▶ tokens ─ NgramCounter ─▶ rows of numbers ──────────── map_rows, write_csr ─▶ CSR
//                                     └▶ merge ─▶ NgramTree ─ order_terms ─▶ Vocabulary ─┘
//
// Texts that do not fit into memory are counted in shards (tfidf_shards.h).
//
// Transforming looks each n-gram up in the vocabulary (TermTree), or hashes it to a column; both sort and weigh a row
// the same way.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/base/parallel.h"
#include "kernels/text/tfidf_order.h"
#include "kernels/text/tfidf_rows.h"
#include "kernels/text/tfidf_terms.h"
#include "kernels/text/tokenize.h"

namespace lt {

struct TfidfFit {
  std::vector<uint8_t> term_bytes;    // empty in hashing mode
  std::vector<int64_t> term_offsets;  // (n_terms + 1), or empty in hashing mode
  std::vector<int32_t> columns;       // (n_weights) in hashing mode, ascending: those whose weight is not `others`
  std::vector<float> weights;         // (n_terms or n_weights) idf, or 1 without idf; 0 for hashed columns pruned
  float others = 0;                   // weight of the hashed columns that no text has
  int64_t n_seen = 0;                 // different terms before pruning; columns in use in hashing mode
  std::vector<uint32_t> n_texts;      // (n_terms or n_weights) texts that hold it
  std::vector<uint64_t> n_times;      // (n_terms) how often it occurs, or empty: if asked for, or if terms are ranked
  CsrArrays rows;                     // if asked for
};

struct TfidfFitOptions {
  Pruning pruning;
  Weighting weighting;      // its weights are ignored
  bool idf = true;          // weight = 1 + log((n + s) / (texts with the term + s)), s = 1 if smooth, else 0
  bool smooth = true;       //
  uint32_t n_features = 0;  // hash n-grams to that many columns instead of keeping a vocabulary; 0: do not
  bool rows = true;         // also return the rows of the texts
  bool times = false;       // also return how often each term occurs

  // The weight of a term that `with` of `n_texts` texts hold.
  float weight(double with, double n_texts) const;
};

TfidfFit fit_tfidf(const std::vector<TextView>& texts, const TextOptions& options, const TfidfFitOptions& fit,
                   int n_threads, const Poll& poll);

// Weights of hashed columns, looked up in `dense`, which is filled here, where that is not much larger than the list.
ColumnWeights hashed_weights(const int32_t* columns, const float* weights, int64_t n, float others, uint32_t n_columns,
                             std::vector<float>& dense);

// What is needed to transform.
struct TfidfModel {
  const TextOptions* options = nullptr;
  const TermTree* terms = nullptr;  // null in hashing mode
  uint32_t n_columns = 0;
  Weighting weighting;
};

CsrArrays transform_tfidf(const std::vector<TextView>& texts, const TfidfModel& model, int n_threads, const Poll& poll);

// What a worker needs from text to text.
struct TextScratch {
  Tokens tokens;
  NgramWalk walk;
  Buffer<Entry> row, spare;
};

// Appends the sorted row of a text to rows[0 .. size).
void text_row(const TextView& text, const TfidfModel& model, TextScratch& scratch, Buffer<Entry>& rows, int64_t& size);

}  // namespace lt
