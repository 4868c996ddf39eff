#include "bindings/arrays.h"
#include "bindings/filter_arrays.h"
#include "kernels/codes/neighbors.h"

namespace lt::bind {

namespace {}  // namespace

void bind_neighbors(nb::module_& m) {
  m.def(
      "sparse_neighbors",
      [](Array1<int64_t> indptr, Array1<int32_t> indices, Array1<float> values, int64_t n_train,
         Array1<double> row_weights, Array1<int64_t> query_indptr, Array1<int32_t> query_indices,
         Array1<float> query_values, int64_t n_features, int64_t k, int n_threads) {
        const CsrView postings = csr_view(indptr, indices, values, n_train);
        const CsrView queries = csr_view(query_indptr, query_indices, query_values, n_features);
        require(postings.n_rows == n_features, "the index and the queries differ in their number of features");
        require(static_cast<int64_t>(row_weights.shape(0)) == n_train, "one weight per training row is needed");
        Ranked out(queries.n_rows, k);
        const Poll poll = poll_python(nb::none());
        {
          nb::gil_scoped_release nogil;
          sparse_neighbors(postings, row_weights.data(), n_train, queries, k, n_threads, out.ids.data(),
                           out.scores.data(), poll);
        }
        return out.take();
      },
      nb::arg("indptr"), nb::arg("indices"), nb::arg("values"), nb::arg("n_train"), nb::arg("row_weights"),
      nb::arg("query_indptr"), nb::arg("query_indices"), nb::arg("query_values"), nb::arg("n_features"), nb::arg("k"),
      nb::arg("n_threads"));
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
      [](Array2<int32_t> neighbors, Array2<float> weights, Array1<int64_t> indptr, Array1<int32_t> indices,
         Array1<float> values, int64_t n_labels, int64_t k, int n_threads, nb::object filter) {
        require(neighbors.shape(0) == weights.shape(0) && neighbors.shape(1) == weights.shape(1),
                "neighbors and weights differ in shape");
        const CsrView labels = csr_view(indptr, indices, values, n_labels);
        Ranked out(static_cast<int64_t>(neighbors.shape(0)), k);
        const FilterArrays allowed(filter, static_cast<int64_t>(neighbors.shape(0)), n_labels);
        const Poll poll = poll_python(nb::none());
        {
          nb::gil_scoped_release nogil;
          vote(matrix_view(neighbors), matrix_view(weights), labels, k, n_threads, out.ids.data(), out.scores.data(),
               poll, allowed.view());
        }
        return out.take();
      },
      nb::arg("neighbors"), nb::arg("weights"), nb::arg("indptr"), nb::arg("indices"), nb::arg("values"),
      nb::arg("n_labels"), nb::arg("k"), nb::arg("n_threads"), nb::arg("filter").none() = nb::none());
}

}  // namespace lt::bind
