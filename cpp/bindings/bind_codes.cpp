#include "bindings/arrays.h"
#include "kernels/codes/bucket_decode.h"
#include "kernels/codes/pattern_product.h"
#include "kernels/codes/recovery.h"
#include "kernels/codes/sparse_product.h"

namespace lt::bind {

namespace {

using Array3 = nb::ndarray<const float, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

// A bucket code with the arrays it borrows and the members of its buckets.
class BucketDecoder {
 public:
  BucketDecoder(Array2<int32_t> table, int64_t n_buckets, int n_threads) : kept_(nb::cast(table)) {
    code_ = {static_cast<int64_t>(table.shape(0)), static_cast<int64_t>(table.shape(1)), n_buckets, table.data()};
    require(code_.n_repetitions >= 1 && n_buckets >= 1, "a code needs at least one repetition and one bucket");
    for (size_t i = 0; i < table.size(); ++i)
      require(code_.table[i] >= 0 && code_.table[i] < n_buckets,
              "bucket " + std::to_string(code_.table[i]) + " lies outside [0, " + std::to_string(n_buckets) + ")");
    nb::gil_scoped_release nogil;
    members_ = bucket_members(code_, n_threads);
  }

  nb::tuple decode(Array3 scores, int64_t k, int link, int aggregation, float scale, float offset, bool exact,
                   bool partial, int64_t top_buckets, int64_t least_hits, bool allow_pruning, int n_threads) {
    require(static_cast<int64_t>(scores.shape(1)) == code_.n_repetitions &&
                static_cast<int64_t>(scores.shape(2)) == code_.n_buckets,
            "scores must have the shape (n, repetitions, buckets)");
    require(link >= 0 && link <= 3 && aggregation >= 0 && aggregation <= 2, "unknown link or aggregation");
    require(scale > 0, "scale must be positive");
    require(top_buckets >= 1 && least_hits >= 1, "top_buckets and least_hits must be at least 1");
    DecodeParams params{static_cast<Link>(link),
                        static_cast<Aggregation>(aggregation),
                        scale,
                        offset,
                        exact,
                        partial,
                        top_buckets,
                        least_hits,
                        allow_pruning};
    require(params.aggregation != Aggregation::median || code_.n_repetitions <= kMostMedian,
            "the median is taken over at most " + std::to_string(kMostMedian) + " repetitions");
    const MatrixView<const float> view{static_cast<int64_t>(scores.shape(0)), code_.n_repetitions * code_.n_buckets,
                                       scores.data()};
    Ranked out(view.n_rows, k);
    const Poll poll = poll_python(nb::none());
    {
      nb::gil_scoped_release nogil;
      decode_buckets(code_, members_, view, params, k, n_threads, out.ids.data(), out.scores.data(), poll);
    }
    return out.take();
  }

 private:
  nb::object kept_;
  BucketCode code_;
  BucketMembers members_;
};

MatrixView<const float> check_blocks(const Array3& blocks, int64_t n_rows, const std::optional<Array1<float>>& bias,
                                     const Array2<float>& queries) {
  require(n_rows >= 0 && static_cast<int64_t>(blocks.shape(0)) == (n_rows + 15) / 16 && blocks.shape(2) == 16,
          "rows must come in blocks of 16");
  require(blocks.shape(1) == queries.shape(1), "rows and queries differ in their width");
  require(!bias || static_cast<int64_t>(bias->shape(0)) == n_rows, "one bias per row is needed");
  return matrix_view(queries);
}

}  // namespace

void bind_codes(nb::module_& m) {
  m.def(
      "hash_labels",
      [](int64_t first, int64_t count, Array1<uint32_t> seeds, int64_t n_buckets, int n_threads) {
        require(first >= 0 && count >= 0 && first + count <= INT32_MAX, "label ids lie below 2^31");
        require(n_buckets >= 1 && n_buckets <= INT32_MAX, "n_buckets must be at least 1");
        const size_t R = seeds.shape(0);
        std::vector<int32_t> table(static_cast<size_t>(count) * R);
        {
          nb::gil_scoped_release nogil;
          hash_labels(first, count, seeds.data(), static_cast<int64_t>(R), n_buckets, n_threads, table.data());
        }
        return to_numpy(std::move(table), {static_cast<size_t>(count), R});
      },
      nb::arg("first"), nb::arg("count"), nb::arg("seeds"), nb::arg("n_buckets"), nb::arg("n_threads"));
  nb::class_<BucketDecoder>(m, "BucketDecoder")
      .def(nb::init<Array2<int32_t>, int64_t, int>(), nb::arg("table"), nb::arg("n_buckets"), nb::arg("n_threads"))
      .def("decode", &BucketDecoder::decode, nb::arg("scores"), nb::arg("k"), nb::kw_only(), nb::arg("link"),
           nb::arg("aggregation"), nb::arg("scale"), nb::arg("offset"), nb::arg("exact"), nb::arg("partial"),
           nb::arg("top_buckets"), nb::arg("least_hits"), nb::arg("allow_pruning"), nb::arg("n_threads"));
  m.def(
      "sparse_product",
      [](const CsrArgs& csr, Array2<float> dense, std::optional<Array1<float>> bias, bool relu, int n_threads) {
        const CsrView matrix = csr.view();
        require(static_cast<int64_t>(dense.shape(0)) == matrix.n_cols, "the matrices do not fit together");
        require(!bias || bias->shape(0) == dense.shape(1), "one bias per column is needed");
        std::vector<float> out(matrix.n_rows * dense.shape(1));
        const Poll poll = poll_python(nb::none());
        {
          nb::gil_scoped_release nogil;
          sparse_product(matrix, matrix_view(dense), bias ? bias->data() : nullptr, relu, n_threads, out.data(), poll);
        }
        return to_numpy(std::move(out), {static_cast<size_t>(matrix.n_rows), dense.shape(1)});
      },
      nb::arg("csr"), nb::arg("dense"), nb::arg("bias").none(), nb::arg("relu"), nb::arg("n_threads"));
  m.def(
      "dense_product",
      [](Array2<float> matrix, Array2<float> dense, std::optional<Array1<float>> bias, bool relu, int n_threads) {
        require(matrix.shape(1) == dense.shape(0), "the matrices do not fit together");
        require(!bias || bias->shape(0) == dense.shape(1), "one bias per column is needed");
        std::vector<float> out(matrix.shape(0) * dense.shape(1));
        const Poll poll = poll_python(nb::none());
        {
          nb::gil_scoped_release nogil;
          dense_product(matrix_view(matrix), matrix_view(dense), bias ? bias->data() : nullptr, relu, n_threads,
                        out.data(), poll);
        }
        return to_numpy(std::move(out), {matrix.shape(0), dense.shape(1)});
      },
      nb::arg("matrix"), nb::arg("dense"), nb::arg("bias").none(), nb::arg("relu"), nb::arg("n_threads"));
  m.def(
      "pattern_product",
      [](Array1<int64_t> indptr, Array1<int32_t> indices, int64_t n_cols, Array2<float> a, Array2<float> b,
         int n_threads) {
        require(indptr.shape(0) >= 1, "indptr needs at least one entry");
        const int64_t n_rows = static_cast<int64_t>(indptr.shape(0)) - 1;
        require(indptr.data()[0] == 0 && indptr.data()[n_rows] == static_cast<int64_t>(indices.shape(0)),
                "indptr and indices disagree about the number of entries");
        for (int64_t i = 0; i < n_rows; ++i)
          require(indptr.data()[i] <= indptr.data()[i + 1], "indptr must not descend");
        require(static_cast<int64_t>(a.shape(0)) == n_rows && static_cast<int64_t>(b.shape(0)) == n_cols,
                "the pattern and the rows do not fit together");
        require(a.shape(1) == b.shape(1), "rows differ in their width");
        const CsrView pattern{n_rows, n_cols, indptr.data(), indices.data(), nullptr};
        std::vector<float> out(indices.shape(0));
        const Poll poll = poll_python(nb::none());
        {
          nb::gil_scoped_release nogil;
          pattern_product(pattern, matrix_view(a), matrix_view(b), n_threads, out.data(), poll);
        }
        return to_numpy(std::move(out));
      },
      nb::arg("indptr"), nb::arg("indices"), nb::arg("n_cols"), nb::arg("a"), nb::arg("b"), nb::arg("n_threads"));
  m.def(
      "top_inner_products",
      [](Array3 blocks, int64_t n_rows, std::optional<Array1<float>> bias, Array2<float> queries, int64_t k,
         int n_threads) {
        const auto view = check_blocks(blocks, n_rows, bias, queries);
        Ranked out(view.n_rows, k);
        const Poll poll = poll_python(nb::none());
        {
          nb::gil_scoped_release nogil;
          top_inner_products(blocks.data(), n_rows, bias ? bias->data() : nullptr, view, k, n_threads, out.ids.data(),
                             out.scores.data(), poll);
        }
        return out.take();
      },
      nb::arg("blocks"), nb::arg("n_rows"), nb::arg("bias").none(), nb::arg("queries"), nb::arg("k"),
      nb::arg("n_threads"));
  m.def(
      "inner_products",
      [](Array3 blocks, int64_t n_rows, std::optional<Array1<float>> bias, Array2<float> queries, int n_threads) {
        const auto view = check_blocks(blocks, n_rows, bias, queries);
        std::vector<float> out(view.n_rows * n_rows);
        const Poll poll = poll_python(nb::none());
        {
          nb::gil_scoped_release nogil;
          inner_products(blocks.data(), n_rows, bias ? bias->data() : nullptr, view, n_threads, out.data(), poll);
        }
        return to_numpy(std::move(out), {queries.shape(0), static_cast<size_t>(n_rows)});
      },
      nb::arg("blocks"), nb::arg("n_rows"), nb::arg("bias").none(), nb::arg("queries"), nb::arg("n_threads"));
  m.def(
      "probe_lists",
      [](Array1<int64_t> list_ptr, Array1<int32_t> row_of, Array3 blocks, Array2<int32_t> probes, Array2<float> queries,
         int64_t k, int n_threads) {
        require(list_ptr.shape(0) >= 1, "list_ptr needs at least one entry");
        const int64_t n_lists = static_cast<int64_t>(list_ptr.shape(0)) - 1;
        for (int64_t l = 0; l < n_lists; ++l)
          require(list_ptr.data()[l] <= list_ptr.data()[l + 1] && list_ptr.data()[l + 1] % 16 == 0,
                  "lists must ascend in multiples of 16");
        require(list_ptr.data()[0] == 0 && list_ptr.data()[n_lists] == static_cast<int64_t>(row_of.shape(0)) &&
                    blocks.shape(0) * 16 == row_of.shape(0) && blocks.shape(2) == 16,
                "lists, rows and blocks disagree about the number of rows");
        require(blocks.shape(1) == queries.shape(1), "rows and queries differ in their width");
        require(probes.shape(0) == queries.shape(0), "one row of probes per query is needed");
        const InvertedLists lists{n_lists, list_ptr.data(), row_of.data(), blocks.data()};
        Ranked out(static_cast<int64_t>(queries.shape(0)), k);
        const Poll poll = poll_python(nb::none());
        {
          nb::gil_scoped_release nogil;
          probe_lists(lists, matrix_view(probes), matrix_view(queries), k, n_threads, out.ids.data(), out.scores.data(),
                      poll);
        }
        return out.take();
      },
      nb::arg("list_ptr"), nb::arg("row_of"), nb::arg("blocks"), nb::arg("probes"), nb::arg("queries"), nb::arg("k"),
      nb::arg("n_threads"));
  m.def(
      "sum_votes",
      [](Array2<int32_t> neighbors, Array2<float> weights, const CsrArgs& csr, int64_t k, int n_threads) {
        require(neighbors.shape(0) == weights.shape(0) && neighbors.shape(1) == weights.shape(1),
                "neighbors and weights differ in shape");
        const CsrView labels = csr.view();
        Ranked out(static_cast<int64_t>(neighbors.shape(0)), k);
        const Poll poll = poll_python(nb::none());
        {
          nb::gil_scoped_release nogil;
          sum_votes(matrix_view(neighbors), matrix_view(weights), labels, k, n_threads, out.ids.data(),
                    out.scores.data(), poll);
        }
        return out.take();
      },
      nb::arg("neighbors"), nb::arg("weights"), nb::arg("csr"), nb::arg("k"), nb::arg("n_threads"));
}

}  // namespace lt::bind
