#include "bindings/arrays.h"
#include "kernels/decide/bootstrap.h"
#include "kernels/decide/match.h"

namespace lt::bind {

namespace {

template <class T>
const T* row_values(const std::optional<Array1<T>>& values, int64_t n, const char* name) {
  if (!values) return nullptr;
  require(static_cast<int64_t>(values->shape(0)) == n, std::string(name) + " has the wrong length");
  return values->data();
}

}  // namespace

void bind_metrics(nb::module_& m) {
  m.def(
      "match_gains",
      [](const CsrArgs& csr, Array2<int32_t> ids, int n_threads) {
        const CsrView truth = csr.view();
        const auto predicted = matrix_view(ids);
        require(predicted.n_rows == truth.n_rows, "truth and predictions have different numbers of rows");
        std::vector<float> gains(static_cast<size_t>(predicted.n_rows * predicted.n_cols));
        const Poll poll = poll_python(nb::none());
        {
          nb::gil_scoped_release nogil;
          match_gains(truth, predicted, n_threads, gains.data(), poll);
        }
        return to_numpy(std::move(gains), {ids.shape(0), ids.shape(1)});
      },
      nb::arg("csr"), nb::arg("ids"), nb::arg("n_threads"));
  m.def(
      "ideal_gains",
      [](const CsrArgs& csr, std::optional<Array1<double>> weights, int64_t k, int n_threads) {
        const CsrView truth = csr.view();
        require(k >= 0, "k must not be negative");
        const double* label_weights = row_values(weights, csr.n_cols, "weights");
        std::vector<double> ideal(static_cast<size_t>(truth.n_rows * k));
        const Poll poll = poll_python(nb::none());
        {
          nb::gil_scoped_release nogil;
          ideal_gains(truth, label_weights, k, n_threads, ideal.data(), poll);
        }
        return to_numpy(std::move(ideal), {static_cast<size_t>(truth.n_rows), static_cast<size_t>(k)});
      },
      nb::arg("csr"), nb::arg("weights").none(), nb::arg("k"), nb::arg("n_threads"));
  m.def(
      "add_by_label_topk",
      [](Array2<int32_t> ids, int64_t k, std::optional<Array2<float>> values, std::optional<Array1<double>> row_weights,
         int64_t n_labels) {
        const auto view = matrix_view(ids);
        require(k >= 0 && k <= view.n_cols, "k is larger than the number of slots");
        require(!values || (values->shape(0) == ids.shape(0) && values->shape(1) == ids.shape(1)),
                "values and ids have different shapes");
        const double* weights = row_values(row_weights, view.n_rows, "row_weights");
        std::vector<double> sums(static_cast<size_t>(n_labels));
        {
          nb::gil_scoped_release nogil;
          add_by_label(view, k, values ? values->data() : nullptr, weights, n_labels, sums.data());
        }
        return to_numpy(std::move(sums));
      },
      nb::arg("ids"), nb::arg("k"), nb::arg("values").none(), nb::arg("row_weights").none(), nb::arg("n_labels"));
  m.def(
      "add_by_label_csr",
      [](const CsrArgs& csr, std::optional<Array1<double>> row_weights) {
        const CsrView truth = csr.view();
        const double* weights = row_values(row_weights, truth.n_rows, "row_weights");
        std::vector<double> sums(static_cast<size_t>(csr.n_cols));
        {
          nb::gil_scoped_release nogil;
          add_by_label(truth, weights, sums.data());
        }
        return to_numpy(std::move(sums));
      },
      nb::arg("csr"), nb::arg("row_weights").none());
  m.def(
      "resample_counts",
      [](int64_t n, uint64_t seed, int64_t b) {
        std::vector<uint16_t> counts(static_cast<size_t>(n));
        {
          nb::gil_scoped_release nogil;
          resample_counts(n, seed, b, counts.data());
        }
        return to_numpy(std::move(counts));
      },
      nb::arg("n"), nb::arg("seed"), nb::arg("b"));
  m.def(
      "resample_sums",
      [](Array2<double> terms, int64_t n_resamples, uint64_t seed, int n_threads) {
        const auto view = matrix_view(terms);
        require(n_resamples >= 0, "n_resamples must not be negative");
        std::vector<double> sums(static_cast<size_t>(n_resamples * view.n_cols));
        const Poll poll = poll_python(nb::none());
        {
          nb::gil_scoped_release nogil;
          resample_sums(view, n_resamples, seed, n_threads, sums.data(), poll);
        }
        return to_numpy(std::move(sums), {static_cast<size_t>(n_resamples), terms.shape(1)});
      },
      nb::arg("terms"), nb::arg("n_resamples"), nb::arg("seed"), nb::arg("n_threads"));
}

}  // namespace lt::bind
