#include <algorithm>
#include <limits>
#include <memory>
#include <mutex>

#include "bindings/arrays.h"
#include "bindings/filter_arrays.h"
#include "bindings/layer_arrays.h"
#include "kernels/base/canonical.h"
#include "kernels/base/unit_rows.h"
#include "kernels/linear/beam_search.h"

namespace lt::bind {

namespace {

nb::dict build_layer_py(const CsrArgs& csr, Array1<float> bias, Array1<int64_t> child_ptr, int n_threads,
                        int64_t most_entries) {
  const CsrView weights = csr.view();
  require(static_cast<int64_t>(bias.shape(0)) == weights.n_rows, "one bias per child");
  require(child_ptr.shape(0) >= 1, "offsets of parents' children need at least one entry");
  const int64_t n_parents = static_cast<int64_t>(child_ptr.shape(0)) - 1;
  check_offsets(child_ptr.data(), n_parents, weights.n_rows, "offsets of parents' children");
  ChunkLayer layer;
  {
    nb::gil_scoped_release nogil;
    build_layer(weights, bias.data(), n_parents, child_ptr.data(), n_threads, layer,
                std::clamp<int64_t>(most_entries, 0, kMostEntries));
  }
  return layer_dict(std::move(layer));
}

// Reads layers out of dictionaries of arrays, and keeps the arrays that the views borrow.
class LayerArrays {
 public:
  ChunkLayerView read(nb::dict arrays, int64_t n_features, int n_threads) {
    ChunkLayerView layer;
    int64_t n_parent_chunks, n_chunk_children, n_feature_ptr, n_base, n_bucket_ptr, n_shift, n_buckets,
        n_features_total, n_entry_ptr, n_child, n_value, n_bias, n_step = 0;
    layer.parent_chunks = keep<int64_t>(arrays, "parent_chunks", n_parent_chunks);
    layer.chunk_children = keep<int64_t>(arrays, "chunk_children", n_chunk_children);
    layer.feature_ptr = keep<int64_t>(arrays, "feature_ptr", n_feature_ptr);
    layer.entry_base = keep<int64_t>(arrays, "entry_base", n_base);
    layer.bucket_ptr = keep<int64_t>(arrays, "bucket_ptr", n_bucket_ptr);
    layer.bucket_shift = keep<uint8_t>(arrays, "bucket_shift", n_shift);
    layer.buckets = keep<uint32_t>(arrays, "buckets", n_buckets);
    layer.features = keep<int32_t>(arrays, "features", n_features_total);
    layer.entry_ptr = keep<uint32_t>(arrays, "entry_ptr", n_entry_ptr);
    layer.child = keep<uint16_t>(arrays, "child", n_child);
    if (arrays.contains("value_int8")) {
      layer.precision = WeightType::int8;
      layer.value_int8 = keep<int8_t>(arrays, "value_int8", n_value);
      layer.step = keep<float>(arrays, "step", n_step);
    } else if (arrays.contains("value_bf16")) {
      layer.precision = WeightType::bf16;
      layer.value_bf16 = keep<uint16_t>(arrays, "value_bf16", n_value);
    } else {
      layer.value = keep<float>(arrays, "value", n_value);
    }
    layer.bias = keep<float>(arrays, "bias", n_bias);
    layer.n_features = n_features;
    layer.n_parents = n_parent_chunks - 1;
    layer.n_chunks = n_shift;
    layer.n_children = n_bias;
    require(n_parent_chunks >= 1 && n_chunk_children == n_shift + 1 && n_feature_ptr == n_shift + 1 &&
                n_base == n_shift + 1 && n_bucket_ptr == n_shift + 1 && n_child == n_value,
            "damaged search layer: array lengths");
    require(layer.precision != WeightType::int8 || n_step == n_bias, "damaged search layer: one step per child");
    check_layer(layer, n_features_total, n_entry_ptr, n_child, n_buckets, n_threads);
    return layer;
  }

  template <class T>
  void add(Array1<T> array) {
    kept_.push_back(std::make_shared<Array1<T>>(std::move(array)));
  }

 private:
  template <class T>
  const T* keep(nb::dict layer, const char* name, int64_t& size) {
    auto array = nb::cast<Array1<T>>(layer[name]);
    size = static_cast<int64_t>(array.shape(0));
    const T* data = array.data();
    kept_.push_back(std::make_shared<Array1<T>>(std::move(array)));  // the one viewed: it may be a converted copy
    return data;
  }

  std::vector<std::shared_ptr<void>> kept_;
};

// Weights of a layer of floats by child: indptr, indices, values.
nb::tuple layer_weights_py(nb::dict arrays, int64_t n_features) {
  LayerArrays kept;
  const ChunkLayerView layer = kept.read(arrays, n_features, 1);
  require(layer.precision == WeightType::f32, "weights by child are those of a layer of floats");
  ChildWeights found;
  {
    nb::gil_scoped_release nogil;
    found = weights_by_child(layer);
  }
  return nb::make_tuple(to_numpy(std::move(found.indptr)), to_numpy(std::move(found.indices)),
                        to_numpy(std::move(found.values)));
}

// Layers of a model with the arrays they borrow, ready to search from any number of Python threads.
class BeamSearcher {
 public:
  BeamSearcher(nb::list layers, Array1<int32_t> transforms, Array1<int32_t> powers,
               std::optional<Array1<int32_t>> label_of_leaf, int64_t n_features, int n_threads, int64_t n_dense) {
    require(layers.size() > 0, "a model needs at least one layer");
    require(transforms.shape(0) == layers.size() && powers.shape(0) == layers.size(), "one post-processor per layer");
    for (size_t t = 0; t < layers.size(); ++t) {
      model_.layers.push_back(kept_.read(nb::cast<nb::dict>(layers[t]), n_features, n_threads));
      const int32_t p = powers.data()[t];
      require(p >= 1 && p <= 16, "the power of a hinge lies between 1 and 16");
      model_.post.push_back({static_cast<Transform>(transforms.data()[t]), p});
      if (t) require(model_.layers[t].n_parents == model_.layers[t - 1].n_children, "layers do not fit together");
    }
    require(model_.layers[0].n_parents == 1, "the first layer has one parent, the root");
    if (label_of_leaf) {
      require(static_cast<int64_t>(label_of_leaf->shape(0)) == model_.layers.back().n_children, "one label per leaf");
      model_.label_of_leaf = label_of_leaf->data();
      kept_.add(*label_of_leaf);
    }
    require(n_dense >= 0 && n_dense <= n_features, "no more dense columns than columns");
    nb::gil_scoped_release nogil;
    for (const ChunkLayerView& layer : model_.layers)
      if (n_dense) {
        tables_.emplace_back(layer, n_dense, n_threads);
        model_.tables.push_back(tables_.back().view());
      }
  }

  nb::tuple search_sparse(const CsrArgs& csr, int64_t k, std::vector<int64_t> beams, bool normalize, int n_threads,
                          nb::object filter) {
    Queries queries;
    queries.normalize = normalize;
    queries.sparse = csr.view(n_threads);
    require(csr.n_cols == model_.layers[0].n_features, "queries have another width than the model");
    return search(queries, k, beams, n_threads, filter);
  }

  nb::tuple search_dense(Array2<float> matrix, int64_t k, std::vector<int64_t> beams, bool normalize, int n_threads,
                         nb::object filter) {
    Queries queries;
    queries.normalize = normalize;
    queries.dense = true;
    queries.matrix = {static_cast<int64_t>(matrix.shape(0)), static_cast<int64_t>(matrix.shape(1)), matrix.data()};
    require(queries.matrix.n_cols == model_.layers[0].n_features, "queries have another width than the model");
    return search(queries, k, beams, n_threads, filter);
  }

  // Sparse rows with a dense block for the last columns, as many as the searcher was made for.
  nb::tuple search_blocks(const CsrArgs& csr, Array2<float> dense, int64_t k, std::vector<int64_t> beams,
                          bool normalize, int n_threads, nb::object filter) {
    return search(block_queries(csr, dense, normalize, n_threads), k, beams, n_threads, filter);
  }

  nb::object scores_blocks(const CsrArgs& csr, Array2<float> dense, bool normalize, int n_threads) {
    const Queries queries = block_queries(csr, dense, normalize, n_threads);
    return scores(queries, queries.sparse.n_cols + queries.matrix.n_cols, n_threads);
  }

  int64_t n_dense() const { return model_.tables.empty() ? 0 : model_.tables[0].n_columns; }

  // Raw scores of all children of the first layer, (n, n_children).
  nb::object scores_sparse(const CsrArgs& csr, bool normalize, int n_threads) {
    Queries queries;
    queries.normalize = normalize;
    queries.sparse = csr.view(n_threads);
    return scores(queries, csr.n_cols, n_threads);
  }

  nb::object scores_dense(Array2<float> matrix, bool normalize, int n_threads) {
    Queries queries;
    queries.normalize = normalize;
    queries.dense = true;
    queries.matrix = {static_cast<int64_t>(matrix.shape(0)), static_cast<int64_t>(matrix.shape(1)), matrix.data()};
    return scores(queries, queries.matrix.n_cols, n_threads);
  }

  // Weights that sparse queries have added up so far: what a profile divides the time by.
  int64_t entries() {
    std::lock_guard lock(mutex_);
    int64_t total = 0;
    for (const ScratchPtr& scratch : idle_) total += entries_read(*scratch);
    return total;
  }

 private:
  Queries block_queries(const CsrArgs& csr, const Array2<float>& dense, bool normalize, int n_threads) const {
    Queries queries;
    queries.normalize = normalize;
    queries.sparse = csr.view(n_threads);
    queries.matrix = dense_view(dense, queries.sparse.n_rows);
    require(queries.matrix.n_cols == n_dense(), "queries have another dense block than the searcher was made for");
    require(queries.sparse.n_cols + queries.matrix.n_cols == model_.layers[0].n_features,
            "queries have another width than the model");
    return queries;
  }

  nb::object scores(const Queries& queries, int64_t n_cols, int n_threads) {
    const ChunkLayerView& layer = model_.layers[0];
    require(n_cols == layer.n_features, "queries have another width than the model");
    std::vector<float> out(queries.n() * layer.n_children);
    const Poll poll = poll_python(nb::none());
    {
      nb::gil_scoped_release nogil;
      score_layer(layer, queries.blocks() ? &model_.tables[0] : nullptr, queries, n_threads, out.data(), poll);
    }
    return nb::cast(
        to_numpy(std::move(out), {static_cast<size_t>(queries.n()), static_cast<size_t>(layer.n_children)}));
  }

  nb::tuple search(const Queries& queries, int64_t k, const std::vector<int64_t>& beams, int n_threads,
                   nb::object filter) {
    require(k >= 1, "k must be at least 1");
    require(beams.size() + 1 == model_.layers.size(), "one beam width per layer but the last");
    for (int64_t beam : beams) require(beam >= 1, "a beam must be at least 1 wide");
    const int64_t n = queries.n();
    std::vector<int32_t> ids(n * k);
    std::vector<float> scores(n * k);
    const Poll poll = n > 4096 ? poll_python(nb::none()) : Poll();
    const FilterArrays lists(filter, n, std::numeric_limits<int32_t>::max());
    {
      nb::gil_scoped_release nogil;
      TreeFilter allowed;
      if (lists.view().present()) allowed = {&leaves(), lists.view()};
      std::vector<ScratchPtr> scratch = borrow();
      beam_search(model_, queries, beams, k, n_threads, scratch, ids.data(), scores.data(), poll,
                  allowed.leaves ? &allowed : nullptr);
      give_back(std::move(scratch));
    }
    const std::vector<size_t> shape{static_cast<size_t>(n), static_cast<size_t>(k)};
    return nb::make_tuple(to_numpy(std::move(ids), shape), to_numpy(std::move(scores), shape));
  }

  const LeafIndex& leaves() {
    std::call_once(indexed_, [&] { leaves_ = index_leaves(model_.layers, model_.label_of_leaf); });
    return leaves_;
  }

  std::vector<ScratchPtr> borrow() {
    std::lock_guard lock(mutex_);
    return std::move(idle_);
  }
  void give_back(std::vector<ScratchPtr>&& scratch) {
    std::lock_guard lock(mutex_);
    if (scratch.size() > idle_.size()) idle_ = std::move(scratch);
  }

  SearchModel model_;
  LayerArrays kept_;
  std::vector<OwnedDenseTable> tables_;
  std::once_flag indexed_;
  LeafIndex leaves_;  // for filters
  std::mutex mutex_;
  std::vector<ScratchPtr> idle_;
};

}  // namespace

void bind_linear(nb::module_& m) {
  m.def(
      "is_canonical",
      [](const Array1<int32_t>& indptr, const Array1<int32_t>& indices, const Array1<float>& values, int64_t n_rows,
         int64_t n_cols) {
        const auto nnz = static_cast<int64_t>(indices.shape(0));
        if (static_cast<int64_t>(indptr.shape(0)) != n_rows + 1 || indices.shape(0) != values.shape(0)) return false;
        nb::gil_scoped_release release;
        return is_canonical(indptr.data(), n_rows, indices.data(), values.data(), nnz, n_cols);
      },
      nb::arg("indptr"), nb::arg("indices"), nb::arg("values"), nb::arg("n_rows"), nb::arg("n_cols"));
  m.def(
      "unit_rows",
      [](Array1<int64_t> indptr, Array1<float> values, Mutable1<float> out, int n_threads) {
        require(indptr.shape(0) >= 1, "indptr needs at least one entry");
        const int64_t n_rows = static_cast<int64_t>(indptr.shape(0)) - 1;
        require(indptr.data()[n_rows] <= static_cast<int64_t>(values.shape(0)) && out.shape(0) == values.shape(0),
                "indptr goes beyond the values");
        nb::gil_scoped_release nogil;
        unit_rows(n_rows, indptr.data(), values.data(), n_threads, out.data());
      },
      nb::arg("indptr"), nb::arg("values"), nb::arg("out"), nb::arg("n_threads"));
  m.def("search_block", &search_block, nb::arg("n"), nb::arg("n_threads"));
  m.def("build_layer", &build_layer_py, nb::arg("csr"), nb::arg("bias"), nb::arg("child_ptr"), nb::arg("n_threads"),
        nb::arg("most_entries") = kMostEntries);
  m.def("layer_weights", &layer_weights_py);
  nb::class_<BeamSearcher>(m, "BeamSearcher")
      .def(
          nb::init<nb::list, Array1<int32_t>, Array1<int32_t>, std::optional<Array1<int32_t>>, int64_t, int, int64_t>(),
          nb::arg("layers"), nb::arg("transforms"), nb::arg("powers"), nb::arg("label_of_leaf").none(),
          nb::arg("n_features"), nb::arg("n_threads") = 1, nb::arg("n_dense") = 0)
      .def("search_sparse", &BeamSearcher::search_sparse, nb::arg("csr"), nb::arg("k"), nb::arg("beams"),
           nb::arg("normalize"), nb::arg("n_threads"), nb::arg("filter").none() = nb::none())
      .def("search_dense", &BeamSearcher::search_dense, nb::arg("matrix"), nb::arg("k"), nb::arg("beams"),
           nb::arg("normalize"), nb::arg("n_threads"), nb::arg("filter").none() = nb::none())
      .def("search_blocks", &BeamSearcher::search_blocks, nb::arg("csr"), nb::arg("dense"), nb::arg("k"),
           nb::arg("beams"), nb::arg("normalize"), nb::arg("n_threads"), nb::arg("filter").none() = nb::none())
      .def("scores_blocks", &BeamSearcher::scores_blocks)
      .def("n_dense", &BeamSearcher::n_dense)
      .def("entries_read", &BeamSearcher::entries)
      .def("scores_sparse", &BeamSearcher::scores_sparse)
      .def("scores_dense", &BeamSearcher::scores_dense);
}

}  // namespace lt::bind
