#include <algorithm>

#include "bindings/arrays.h"
#include "kernels/base/synthetic.h"

namespace lt::bind {

namespace {

using Offsets = Array1<int64_t>;

int64_t rows_of(const Offsets& indptr, size_t n_entries) {
  require(indptr.shape(0) >= 1 && indptr.data()[0] == 0, "indptr must start at 0");
  const auto n_rows = static_cast<int64_t>(indptr.shape(0)) - 1;
  require(std::is_sorted(indptr.data(), indptr.data() + n_rows + 1), "indptr must not descend");
  require(indptr.data()[n_rows] == static_cast<int64_t>(n_entries), "indptr does not end at the number of entries");
  return n_rows;
}

void require_ids(const Array1<int32_t>& ids, int64_t limit, const char* name) {
  const bool inside =
      std::all_of(ids.data(), ids.data() + ids.shape(0), [&](int32_t id) { return id >= 0 && id < limit; });
  require(inside, std::string(name) + " is out of range");
}

}  // namespace

void bind_synthetic(nb::module_& m) {
  m.def(
      "synthetic_sizes",
      [](uint64_t seed, const std::string& what, int64_t first_row, int64_t n_rows, int64_t minimum, int64_t maximum,
         double mean, double spread, int n_threads) {
        require(n_rows >= 0 && minimum >= 0 && maximum >= minimum, "sizes must not be negative");
        require(mean >= 0 && mean < 1e9 && spread >= 0 && spread < 3, "mean or spread is out of range");
        const RowPurpose purpose = what == "labels" ? RowPurpose::kLabelCount : RowPurpose::kFeatureCount;
        std::vector<int64_t> out(n_rows);
        {
          nb::gil_scoped_release nogil;
          synthetic_sizes({seed, purpose, first_row, minimum, maximum, mean, spread}, n_rows, n_threads, out.data());
        }
        return to_numpy(std::move(out));
      },
      nb::arg("seed"), nb::arg("what"), nb::arg("first_row"), nb::arg("n_rows"), nb::arg("minimum"), nb::arg("maximum"),
      nb::arg("mean"), nb::arg("spread"), nb::arg("n_threads"));
  m.def(
      "synthetic_labels",
      [](uint64_t seed, int64_t first_row, Array1<int32_t> order, Offsets topic_begin, Array1<double> cumulative,
         Array1<int32_t> row_topic, std::optional<Array1<int32_t>> row_rank, Array1<int32_t> topic_rows, double general,
         double coherence, Offsets indptr, Mutable1<int32_t> labels, int n_threads, const nb::object& progress) {
        const int64_t n_rows = rows_of(indptr, labels.shape(0));
        const auto n_topics = static_cast<int64_t>(topic_begin.shape(0)) - 1;
        require(n_topics > 0 && topic_begin.data()[0] >= 0 &&
                    topic_begin.data()[n_topics] == static_cast<int64_t>(order.shape(0)) &&
                    std::is_sorted(topic_begin.data(), topic_begin.data() + n_topics + 1),
                "topic_begin must not descend and must end at the number of labels");
        const auto n_labels = static_cast<int64_t>(order.shape(0));
        require(n_labels > 0 && cumulative.shape(0) == order.shape(0) + 1,
                "cumulative needs one entry more than order");
        require(static_cast<int64_t>(row_topic.shape(0)) == n_rows, "row_topic needs one entry per row");
        require(static_cast<int64_t>(topic_rows.shape(0)) == n_topics, "topic_rows needs one entry per topic");
        require_ids(row_topic, n_topics, "row_topic");
        if (row_rank) {
          require(static_cast<int64_t>(row_rank->shape(0)) == n_rows, "row_rank needs one entry per row");
          bool inside = true;
          for (int64_t i = 0; i < n_rows; ++i) {
            const int32_t rank = row_rank->data()[i];
            inside = inside && rank >= 0 && rank < topic_rows.data()[row_topic.data()[i]];
          }
          require(inside, "row_rank is out of range");
        }
        const LabelPlan plan{seed,
                             first_row,
                             n_labels,
                             n_topics,
                             order.data(),
                             topic_begin.data(),
                             cumulative.data(),
                             row_topic.data(),
                             row_rank ? row_rank->data() : nullptr,
                             topic_rows.data(),
                             general,
                             coherence};
        const Poll poll = poll_python(progress);
        nb::gil_scoped_release nogil;
        synthetic_labels(plan, n_rows, indptr.data(), n_threads, labels.data(), poll);
      },
      nb::arg("seed"), nb::arg("first_row"), nb::arg("order"), nb::arg("topic_begin"), nb::arg("cumulative"),
      nb::arg("row_topic"), nb::arg("row_rank").none(), nb::arg("topic_rows"), nb::arg("general"), nb::arg("coherence"),
      nb::arg("indptr"), nb::arg("labels"), nb::arg("n_threads"), nb::arg("progress").none());
  m.def(
      "synthetic_features",
      [](uint64_t seed, int64_t first_row, int64_t n_features, int64_t lexicon, int64_t signature, double noise,
         double topical, Array1<int32_t> row_topic, Array1<int32_t> label_topic, Offsets label_indptr,
         Array1<int32_t> labels, Offsets indptr, Mutable1<int32_t> words, Mutable1<float> values, int n_threads,
         const nb::object& progress) {
        const int64_t n_rows = rows_of(indptr, words.shape(0));
        require(words.shape(0) == values.shape(0), "words and values must have the same length");
        require(rows_of(label_indptr, labels.shape(0)) == n_rows, "labels and features must have the same rows");
        require(static_cast<int64_t>(row_topic.shape(0)) == n_rows, "row_topic needs one entry per row");
        require(n_features > 0 && n_features < (int64_t{1} << 31), "n_features is out of range");
        require(lexicon > 0 && lexicon < (int64_t{1} << 31) && signature > 0, "lexicon and signature must be positive");
        require_ids(labels, static_cast<int64_t>(label_topic.shape(0)), "labels");
        const CsrView view{n_rows, static_cast<int64_t>(label_topic.shape(0)), label_indptr.data(), labels.data(),
                           nullptr};
        const FeaturePlan plan{seed,  first_row, n_features,       lexicon,           signature,
                               noise, topical,   row_topic.data(), label_topic.data()};
        const Poll poll = poll_python(progress);
        nb::gil_scoped_release nogil;
        synthetic_features(plan, view, indptr.data(), n_threads, words.data(), values.data(), poll);
      },
      nb::arg("seed"), nb::arg("first_row"), nb::arg("n_features"), nb::arg("lexicon"), nb::arg("signature"),
      nb::arg("noise"), nb::arg("topical"), nb::arg("row_topic"), nb::arg("label_topic"), nb::arg("label_indptr"),
      nb::arg("labels"), nb::arg("indptr"), nb::arg("words"), nb::arg("values"), nb::arg("n_threads"),
      nb::arg("progress").none());
  m.def(
      "synthetic_weigh",
      [](Offsets indptr, Array1<int32_t> words, Array1<float> idf, Mutable1<float> values, int n_threads) {
        const int64_t n_rows = rows_of(indptr, words.shape(0));
        require(words.shape(0) == values.shape(0), "words and values must have the same length");
        require_ids(words, static_cast<int64_t>(idf.shape(0)), "words");
        nb::gil_scoped_release nogil;
        synthetic_weigh(n_rows, indptr.data(), words.data(), idf.data(), n_threads, values.data());
      },
      nb::arg("indptr"), nb::arg("words"), nb::arg("idf"), nb::arg("values"), nb::arg("n_threads"));
}

}  // namespace lt::bind
