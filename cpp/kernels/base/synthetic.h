// Rows of a synthetic data set with long-tailed labels; longtail.data.synthetic explains the model and makes the plan.
//
// Every row has its own random streams, so rows can be made in any order by any number of threads. Words of topics and
// labels are hashes, not tables: three million labels need no memory for them.
#pragma once

#include <cstdint>

#include "kernels/base/parallel.h"
#include "kernels/base/views.h"

namespace lt {

enum class RowPurpose : uint64_t { kLabelCount = 1, kFeatureCount, kLabels, kFeatures, kLexicon, kSignature, kOwnWord };

// How many labels or features each row gets: minimum + Poisson(mean - minimum, varied from row to row by a log-normal
// factor of mean 1), at most maximum.
struct RowSizes {
  uint64_t seed;
  RowPurpose purpose;
  int64_t first_row;
  int64_t minimum;
  int64_t maximum;
  double mean;
  double spread;  // standard deviation of the logarithm of the factor
};
void synthetic_sizes(const RowSizes& sizes, int64_t n_rows, int n_threads, int64_t* out);

// Labels grouped by topic, and how rows draw them. Labels so frequent that they would be on most rows of their topic
// are general: any row may draw them.
struct LabelPlan {
  uint64_t seed;
  int64_t first_row;
  int64_t n_labels;
  int64_t n_topics;
  const int32_t* order;        // (n_labels) label ids: the general ones, then topic after topic
  const int64_t* topic_begin;  // (n_topics + 1) where each topic starts in order; topic_begin[0] labels are general
  const double* cumulative;    // (n_labels + 1) running sums of the labels' weights, in that order; increasing
  const int32_t* row_topic;    // (n_rows)
  // Row r, the row_rank[r]-th of topic_rows[t] rows with its topic t, must have the labels number row_rank[r],
  // row_rank[r] + topic_rows[t], … of t, so that no label goes without a row. Null where nothing is forced.
  const int32_t* row_rank;    // (n_rows)
  const int32_t* topic_rows;  // (n_topics)
  double general;             // share of draws from the general labels
  double coherence;           // share of the other draws that are from the row's own topic, not from all topics
};
// Fills row r with indptr[r + 1] - indptr[r] different labels, in ascending order. A row with room for fewer than are
// forced on it, or for more than n_labels, is refused.
void synthetic_labels(const LabelPlan& plan, int64_t n_rows, const int64_t* indptr, int n_threads, int32_t* labels,
                      const Poll& poll);

// Words, and how rows draw them: noise from the whole vocabulary, topical words, and words of the row's labels.
struct FeaturePlan {
  uint64_t seed;
  int64_t first_row;
  int64_t n_features;
  int64_t lexicon;             // words of a topic
  int64_t signature;           // words of a label, a quarter of them its own, the others from its topic's lexicon
  double noise;                // share of draws from the vocabulary
  double topical;              // share of draws from the topic's lexicon
  const int32_t* row_topic;    // (n_rows)
  const int32_t* label_topic;  // (n_labels)
};
// Draws words until row r has indptr[r + 1] - indptr[r] different ones; values are how often each was drawn.
void synthetic_features(const FeaturePlan& plan, const CsrView& labels, const int64_t* indptr, int n_threads,
                        int32_t* words, float* values, const Poll& poll);

// Turns counts into TF-IDF rows of unit length: value = (1 + ln count) idf[word], divided by the row's norm.
void synthetic_weigh(int64_t n_rows, const int64_t* indptr, const int32_t* words, const float* idf, int n_threads,
                     float* values);

}  // namespace lt
