// Recovery of labels from dense codes: the rows of largest inner product, and the sum of their labels.
//
// Unlike cpp/kernels/codes/neighbors.h, similarities may be negative and votes are sums, not shares: DECLARE's rule
// f = sum_i s_i y_i over the q largest s_i = <z, z_i>, whatever their sign.
#pragma once

#include <cstdint>

#include "kernels/base/parallel.h"
#include "kernels/base/views.h"

namespace lt {

// The k rows of largest <query, row> + bias, best first, ties to the smaller row; padded with -1 and -inf where there
// are fewer rows. blocks: (ceil(n_rows / 16), d, 16), row i in lane i % 16 of block i / 16; bias: (n_rows) or null.
bool top_inner_products(const float* blocks, int64_t n_rows, const float* bias, const MatrixView<const float>& queries,
                        int64_t k, int n_threads, int32_t* ids, float* products, const Poll& poll = {});

// out (n, n_rows) = all inner products plus bias.
bool inner_products(const float* blocks, int64_t n_rows, const float* bias, const MatrixView<const float>& queries,
                    int n_threads, float* out, const Poll& poll = {});

// Inverted lists: row p of the packed rows belongs to list l for list_ptr[l] <= p < list_ptr[l + 1], every list begins
// at a multiple of 16, and row_of[p] is its id (-1 for a spare lane).
struct InvertedLists {
  int64_t n_lists = 0;
  const int64_t* list_ptr = nullptr;  // (n_lists + 1), multiples of 16
  const int32_t* row_of = nullptr;    // (list_ptr[n_lists])
  const float* blocks = nullptr;      // (list_ptr[n_lists] / 16, d, 16)
};

// As top_inner_products, over the lists that probes (n, p) names for each query.
bool probe_lists(const InvertedLists& lists, const MatrixView<const int32_t>& probes,
                 const MatrixView<const float>& queries, int64_t k, int n_threads, int32_t* ids, float* products,
                 const Poll& poll = {});

// score_j = sum_i w_i y_ij over the rows i that neighbors (n, m) names, padded with -1; the k best of the labels that
// any of them has. labels: (n_rows, L).
bool sum_votes(const MatrixView<const int32_t>& neighbors, const MatrixView<const float>& weights,
               const CsrView& labels, int64_t k, int n_threads, int32_t* ids, float* scores, const Poll& poll = {});

}  // namespace lt
