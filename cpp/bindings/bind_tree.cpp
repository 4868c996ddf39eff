#include "bindings/arrays.h"
#include "kernels/tree/balanced_kmeans.h"
#include "kernels/tree/label_features.h"
#include "kernels/tree/node_labels.h"

namespace lt::bind {

namespace {

nb::tuple sum_positive_rows_csr(const CsrArgs& csr, const CsrArgs& label_csr, int64_t max_features, int n_threads,
                                nb::object progress, std::optional<Array2<float>> dense) {
  const CsrView X = csr.view(n_threads);
  const CsrView labels = label_csr.view(n_threads);
  require(labels.n_cols == X.n_rows, "labels and features must have the same rows");
  const MatrixView<const float> more = dense_view(dense, X.n_rows);
  OwnedCsr out;
  {
    nb::gil_scoped_release nogil;
    sum_positive_rows(X, labels, max_features, n_threads, out, poll_python(progress), more);
  }
  return nb::make_tuple(to_numpy(std::move(out.indptr)), to_numpy(std::move(out.indices)),
                        to_numpy(std::move(out.values)));
}

void sum_positive_rows_dense(Array2<float> X, const CsrArgs& label_csr, int n_threads, Mutable2<float> out,
                             nb::object progress) {
  const CsrView labels = label_csr.view();
  require(labels.n_cols == static_cast<int64_t>(X.shape(0)), "labels and features must have the same rows");
  require(static_cast<int64_t>(out.shape(0)) == labels.n_rows && out.shape(1) == X.shape(1),
          "the result needs one row per label and one column per feature");
  const MatrixView<float> result{labels.n_rows, static_cast<int64_t>(X.shape(1)), out.data()};
  nb::gil_scoped_release nogil;
  sum_positive_rows(matrix_view(X), labels, n_threads, result, poll_python(progress));
}

// A plan that would write outside of `order`, or give one place to two splits of a round, is refused.
std::vector<Split> checked_splits(const Array2<int64_t>& splits, const Array1<int64_t>& round_ptr, int64_t n_rows) {
  require(splits.shape(1) == 3, "a split is (begin, cut, end)");
  require(round_ptr.shape(0) >= 1 && round_ptr.data()[0] == 0, "round_ptr must start at 0");
  const int64_t n_rounds = static_cast<int64_t>(round_ptr.shape(0)) - 1;
  require(round_ptr.data()[n_rounds] == static_cast<int64_t>(splits.shape(0)), "round_ptr must cover all splits");
  std::vector<Split> out;
  out.reserve(splits.shape(0));
  for (int64_t round = 0; round < n_rounds; ++round) {
    require(round_ptr.data()[round] <= round_ptr.data()[round + 1], "round_ptr must ascend");
    int64_t free_from = 0;
    for (int64_t i = round_ptr.data()[round]; i < round_ptr.data()[round + 1]; ++i) {
      const int64_t* split = splits.data() + 3 * i;
      require(free_from <= split[0] && split[0] < split[1] && split[1] < split[2] && split[2] <= n_rows,
              "splits of a round must be disjoint, ascending, and hold a row on each side of their cut");
      out.push_back({split[0], split[1], split[2]});
      free_from = split[2];
    }
  }
  return out;
}

template <class Rows>
void run_splits(const Rows& rows, const Array2<int64_t>& splits, const Array1<int64_t>& round_ptr, int max_iter,
                bool spherical, uint64_t seed, int64_t large, int n_threads, const Mutable1<int32_t>& order,
                const nb::object& progress) {
  require(static_cast<int64_t>(order.shape(0)) == rows.n_rows, "order needs one entry per row");
  for (int64_t i = 0; i < rows.n_rows; ++i)
    require(order.data()[i] >= 0 && order.data()[i] < rows.n_rows, "order must hold row numbers");
  require(max_iter >= 1, "max_iter must be at least 1");
  const std::vector<Split> plan = checked_splits(splits, round_ptr, rows.n_rows);
  const SplitParams params{max_iter, spherical, seed, large};
  nb::gil_scoped_release nogil;
  balanced_splits(rows, plan.data(), round_ptr.data(), static_cast<int64_t>(round_ptr.shape(0)) - 1, params, n_threads,
                  order.data(), poll_python(progress));
}

}  // namespace

void bind_tree(nb::module_& m) {
  m.def("sum_positive_rows_csr", &sum_positive_rows_csr, nb::arg("csr"), nb::arg("label_csr"), nb::arg("max_features"),
        nb::arg("n_threads"), nb::arg("progress").none(), nb::arg("dense").none() = nb::none());
  m.def("sum_positive_rows_dense", &sum_positive_rows_dense, nb::arg("X"), nb::arg("label_csr"), nb::arg("n_threads"),
        nb::arg("out"), nb::arg("progress") = nb::none());
  m.def(
      "balanced_splits_csr",
      [](const CsrArgs& csr, Array2<int64_t> splits, Array1<int64_t> round_ptr, int max_iter, bool spherical,
         uint64_t seed, int64_t large, int n_threads, Mutable1<int32_t> order, nb::object progress) {
        run_splits(csr.view(n_threads), splits, round_ptr, max_iter, spherical, seed, large, n_threads, order,
                   progress);
      },
      nb::arg("csr"), nb::arg("splits"), nb::arg("round_ptr"), nb::arg("max_iter"), nb::arg("spherical"),
      nb::arg("seed"), nb::arg("large"), nb::arg("n_threads"), nb::arg("order"), nb::arg("progress") = nb::none());
  m.def(
      "balanced_splits_dense",
      [](Array2<float> rows, Array2<int64_t> splits, Array1<int64_t> round_ptr, int max_iter, bool spherical,
         uint64_t seed, int64_t large, int n_threads, Mutable1<int32_t> order, nb::object progress) {
        run_splits(matrix_view(rows), splits, round_ptr, max_iter, spherical, seed, large, n_threads, order, progress);
      },
      nb::arg("rows"), nb::arg("splits"), nb::arg("round_ptr"), nb::arg("max_iter"), nb::arg("spherical"),
      nb::arg("seed"), nb::arg("large"), nb::arg("n_threads"), nb::arg("order"), nb::arg("progress") = nb::none());
  m.def(
      "node_labels",
      [](const CsrArgs& csr, Array1<int32_t> node_of, int value, int n_threads) {
        const CsrView Y = csr.view(n_threads);
        require(static_cast<int64_t>(node_of.shape(0)) == Y.n_cols, "node_of needs one entry per label");
        NodeLabels out;
        {
          nb::gil_scoped_release nogil;
          out = node_labels(Y, node_of.data(), static_cast<NodeValue>(value), n_threads);
        }
        return nb::make_tuple(to_numpy(std::move(out.indptr)), bind::to_numpy(std::move(out.indices)),
                              to_numpy(std::move(out.values)));
      },
      nb::arg("csr"), nb::arg("node_of"), nb::arg("value"), nb::arg("n_threads"));
}

}  // namespace lt::bind
