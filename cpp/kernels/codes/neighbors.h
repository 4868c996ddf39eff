// Exact nearest neighbours by weighted inner product, and the vote of their labels.
//
// The similarity of a query q and training row i is  key = <q, x_i> * row_weights[i];  with row_weights[i] = 1 / |x_i|
// it is the cosine times |q|, which ranks alike. Only rows with key > 0 are neighbours. Ties go to the smaller row.
//
// Sparse rows are searched through an inverted index: postings row f lists the training rows that have feature f, so a
// query costs the lengths of its features' lists, and rows that share no feature with it are never touched. Dense rows
// are packed in blocks of 16 that lie side by side, so that one vector operation serves 16 rows.
//
// A query's answer depends on nothing but the query: not on the batch it came in, nor on the number of threads.
#pragma once

#include <cstdint>

#include "kernels/base/label_filter.h"
#include "kernels/base/parallel.h"
#include "kernels/base/views.h"

namespace lt {

// ids, keys: (queries.n_rows, k), best first, padded with -1 and -inf. Return false if poll asked to stop.
bool sparse_neighbors(const CsrView& postings, const double* row_weights, int64_t n_train, const CsrView& queries,
                      int64_t k, int n_threads, int32_t* ids, float* keys, const Poll& poll = {});

// blocks: (ceil(n_train / 16), d, 16), row i of the training set in lane i % 16 of block i / 16; spare lanes are zero.
bool dense_neighbors(const float* blocks, const double* row_weights, int64_t n_train,
                     const MatrixView<const float>& queries, int64_t k, int n_threads, int32_t* ids, float* keys,
                     const Poll& poll = {});

// score_j = sum_i w_i y_ij / sum_i w_i over the neighbours i of a query: the share of the vote for label j, in [0, 1].
// neighbors and weights: (n, m), padded with -1; labels: (n_train, L), values in (0, 1]; ids, scores: (n, k). Only
// labels with a vote are answered; under a filter, where k answers are owed, other allowed labels follow with the score
// 0.
bool vote(const MatrixView<const int32_t>& neighbors, const MatrixView<const float>& weights, const CsrView& labels,
          int64_t k, int n_threads, int32_t* ids, float* scores, const Poll& poll = {}, const LabelFilter& filter = {});

}  // namespace lt
