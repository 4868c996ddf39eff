#include "bindings/arrays.h"
#include "bindings/filter_arrays.h"
#include "kernels/codes/neighbors.h"

namespace lt::bind {

namespace {}  // namespace

void bind_neighbors(nb::module_& m) {
  m.def(
      "sparse_neighbors",
      [](const CsrArgs& csr, Array1<double> row_weights, const CsrArgs& query_csr, int64_t k, int n_threads) {
        const CsrView postings = csr.view();
        const CsrView queries = query_csr.view();
        require(postings.n_rows == queries.n_cols, "the index and the queries differ in their number of features");
        require(static_cast<int64_t>(row_weights.shape(0)) == postings.n_cols, "one weight per training row is needed");
        Ranked out(queries.n_rows, k);
        const Poll poll = poll_python(nb::none());
        {
          nb::gil_scoped_release nogil;
          sparse_neighbors(postings, row_weights.data(), postings.n_cols, queries, k, n_threads, out.ids.data(),
                           out.scores.data(), poll);
        }
        return out.take();
      },
      nb::arg("csr"), nb::arg("row_weights"), nb::arg("query_csr"), nb::arg("k"), nb::arg("n_threads"));
  m.def(
      "dense_neighbors",
      [](nb::ndarray<const float, nb::ndim<3>, nb::c_contig, nb::device::cpu> blocks, Array1<double> row_weights,
         Array2<float> queries, int64_t k, int n_threads) {
        const int64_t n_train = static_cast<int64_t>(row_weights.shape(0));
        require(static_cast<int64_t>(blocks.shape(0)) == (n_train + 15) / 16 && blocks.shape(2) == 16,
                "training rows must come in blocks of 16, with one weight per row");
        require(blocks.shape(1) == queries.shape(1), "training rows and queries differ in their number of features");
        Ranked out(static_cast<int64_t>(queries.shape(0)), k);
        const Poll poll = poll_python(nb::none());
        {
          nb::gil_scoped_release nogil;
          dense_neighbors(blocks.data(), row_weights.data(), n_train, matrix_view(queries), k, n_threads,
                          out.ids.data(), out.scores.data(), poll);
        }
        return out.take();
      },
      nb::arg("blocks"), nb::arg("row_weights"), nb::arg("queries"), nb::arg("k"), nb::arg("n_threads"));
  m.def(
      "vote",
      [](Array2<int32_t> neighbors, Array2<float> weights, const CsrArgs& csr, int64_t k, int n_threads,
         nb::object filter) {
        require(neighbors.shape(0) == weights.shape(0) && neighbors.shape(1) == weights.shape(1),
                "neighbors and weights differ in shape");
        const CsrView labels = csr.view();
        Ranked out(static_cast<int64_t>(neighbors.shape(0)), k);
        const FilterArrays allowed(filter, static_cast<int64_t>(neighbors.shape(0)), labels.n_cols);
        const Poll poll = poll_python(nb::none());
        {
          nb::gil_scoped_release nogil;
          vote(matrix_view(neighbors), matrix_view(weights), labels, k, n_threads, out.ids.data(), out.scores.data(),
               poll, allowed.view());
        }
        return out.take();
      },
      nb::arg("neighbors"), nb::arg("weights"), nb::arg("csr"), nb::arg("k"), nb::arg("n_threads"),
      nb::arg("filter").none() = nb::none());
}

}  // namespace lt::bind
