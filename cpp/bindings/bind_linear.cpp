#include <algorithm>
#include <limits>
#include <memory>
#include <mutex>

#include "bindings/arrays.h"
#include "bindings/filter_arrays.h"
#include "kernels/base/numa.h"
#include "kernels/base/unit_rows.h"
#include "kernels/linear/beam_search.h"
#include "kernels/linear/level_training.h"

namespace lt::bind {

namespace {

// Read-only arrays: a searcher checks them once, and views them from then on.
nb::dict layer_dict(ChunkLayer&& layer) {
  nb::dict out;
  out["parent_chunks"] = to_frozen(std::move(layer.parent_chunks));
  out["chunk_children"] = to_frozen(std::move(layer.chunk_children));
  out["feature_ptr"] = to_frozen(std::move(layer.feature_ptr));
  out["entry_base"] = to_frozen(std::move(layer.entry_base));
  out["bucket_ptr"] = to_frozen(std::move(layer.bucket_ptr));
  out["bucket_shift"] = to_frozen(std::move(layer.bucket_shift));
  out["buckets"] = to_frozen(std::move(layer.buckets));
  out["features"] = to_frozen(std::move(layer.features));
  out["entry_ptr"] = to_frozen(std::move(layer.entry_ptr));
  out["child"] = to_frozen(std::move(layer.child));
  out["value"] = to_frozen(std::move(layer.value));
  out["bias"] = to_frozen(std::move(layer.bias));
  return out;
}

template <class T>
const T* optional_data(const std::optional<Array1<T>>& array) {
  return array ? array->data() : nullptr;
}

// What each solver can do, and nothing else under its name.
void check_solver(const LevelData& data, const LevelParams& params, int64_t n_positives) {
  const SolverParams& solver = params.solver;
  const int loss = static_cast<int>(solver.loss), start = static_cast<int>(solver.start);
  require(loss >= 0 && loss <= 3, "loss must be 0 (squared hinge), 1 (hinge), 2 (logistic) or 3 (Huber hinge)");
  require(start >= 0 && start <= 3, "start must be 0 (zero), 1 (mean-separating), 2 (bias -1) or 3 (minus the mean)");
  require(solver.max_iter >= 0 && solver.tolerance >= 0, "max_iter and tolerance cannot be negative");
  if (params.dual) {
    require(solver.loss == Loss::squared_hinge || solver.loss == Loss::hinge,
            "dual coordinate descent solves the squared hinge and the hinge only");
    require(solver.l2 == 1 && solver.l1 == 0, "dual coordinate descent has l2 = 1 and l1 = 0: scale the costs instead");
    require(solver.regularize_bias, "dual coordinate descent always regularises the bias");
  } else {
    require(solver.loss != Loss::hinge, "Newton needs a smooth loss: take the Huber hinge instead of the hinge");
    require(solver.l2 >= 0 && solver.l1 >= 0 && solver.l2 + solver.l1 > 0 && solver.l2 + solver.l1 < 1e30f,
            "l2 and l1 cannot be negative, and one of them must be positive");
    require(solver.smoothing > 0 && solver.smoothing < 1e30f, "smoothing must be positive");
  }
  if (data.positive_sign)
    for (int64_t p = 0; p < n_positives; ++p) {
      const float sign = data.positive_sign[p];
      require(sign >= -1 && sign < 1e30f, "targets are finite and at least -1");
      require(solver.loss == Loss::logistic || sign == 1 || sign == -1, "soft targets need the logistic loss");
    }
}

nb::tuple train_level_py(Array1<int64_t> indptr, Array1<int32_t> indices, Array1<float> values, int64_t n_cols,
                         Array1<int64_t> parent_ptr, Array1<int32_t> parent_rows, Array1<int64_t> child_ptr,
                         Array1<int64_t> positive_ptr, Array1<int32_t> positive_rows,
                         std::optional<Array1<float>> positive_sign, Array1<float> positive_cost,
                         Array1<float> negative_cost, std::optional<Array1<float>> row_weight, int loss, bool dual,
                         float tolerance, int max_iter, float bias, float threshold, uint64_t seed, int64_t batch_bytes,
                         int n_threads, nb::object progress, bool regularize_bias, float l2, float l1, float smoothing,
                         int start, std::optional<float> prune_budget, int64_t first_child, nb::object from,
                         std::optional<Array1<uint8_t>> known_row, std::optional<Array1<uint8_t>> known_positive,
                         std::optional<Mutable1<uint8_t>> room, std::optional<Array1<float>> parent_weight,
                         int64_t scratch_bytes, int64_t most_entries) {
  LevelData data;
  data.X = csr_rows(indptr, indices, values, n_cols);
  data.n_parents = static_cast<int64_t>(parent_ptr.shape(0)) - 1;
  require(data.n_parents >= 0 && child_ptr.shape(0) == parent_ptr.shape(0), "one range of children per parent");
  const int64_t n_children = child_ptr.data()[data.n_parents];
  require(n_children >= 0 && static_cast<int64_t>(positive_ptr.shape(0)) == n_children + 1,
          "one range of positives per child");
  require(static_cast<int64_t>(negative_cost.shape(0)) == n_children, "one negative cost per child");
  require(positive_rows.shape(0) == positive_cost.shape(0), "one cost per positive");
  require(!positive_sign || positive_sign->shape(0) == positive_cost.shape(0), "one sign per positive");
  require(!parent_weight || parent_weight->shape(0) == parent_rows.shape(0), "one weight per row of a parent");
  require(!row_weight || static_cast<int64_t>(row_weight->shape(0)) == data.X.n_rows, "one weight per row");
  data.parent_ptr = parent_ptr.data();
  data.parent_rows = parent_rows.data();
  data.parent_weight = optional_data(parent_weight);
  data.child_ptr = child_ptr.data();
  data.positive_ptr = positive_ptr.data();
  data.positive_rows = positive_rows.data();
  data.positive_sign = optional_data(positive_sign);
  data.positive_cost = positive_cost.data();
  data.negative_cost = negative_cost.data();
  data.row_weight = optional_data(row_weight);
  check_level(data, static_cast<int64_t>(parent_rows.shape(0)), static_cast<int64_t>(positive_rows.shape(0)));
  CsrView begin;
  Array1<int64_t> begin_indptr;  // what the view borrows: conversions may have made copies
  Array1<int32_t> begin_indices;
  Array1<float> begin_values, biases;
  if (!from.is_none()) {
    const auto parts = nb::cast<nb::tuple>(from);
    require(parts.size() == 4, "a start is indptr, indices, values and biases");
    begin_indptr = nb::cast<Array1<int64_t>>(parts[0]);
    begin_indices = nb::cast<Array1<int32_t>>(parts[1]);
    begin_values = nb::cast<Array1<float>>(parts[2]);
    biases = nb::cast<Array1<float>>(parts[3]);
    begin = csr_view(begin_indptr, begin_indices, begin_values, n_cols);
    require(begin.n_rows == n_children && static_cast<int64_t>(biases.shape(0)) == n_children,
            "one starting point per child");
    require(dual, "only the dual solver begins with given weights");
    data.start = &begin;
    data.start_bias = biases.data();
    require(known_row.has_value() == known_positive.has_value(), "what is known: rows and positives, or neither");
    require(!known_row || static_cast<int64_t>(known_row->shape(0)) == data.X.n_rows, "known or not, for every row");
    require(!known_positive || known_positive->shape(0) == positive_rows.shape(0), "known or not, for every positive");
    data.known_row = optional_data(known_row);
    data.known_positive = optional_data(known_positive);
  }
  LevelParams params;
  params.solver.loss = static_cast<Loss>(loss);
  params.solver.tolerance = tolerance;
  params.solver.max_iter = max_iter;
  params.solver.bias = bias;
  params.solver.regularize_bias = regularize_bias;
  params.solver.l2 = l2;
  params.solver.l1 = l1;
  params.solver.smoothing = smoothing;
  params.solver.start = static_cast<Start>(start);
  params.dual = dual;
  check_solver(data, params, static_cast<int64_t>(positive_rows.shape(0)));
  if (prune_budget) {
    require(*prune_budget >= 0 && *prune_budget < 1e6f, "prune_budget must be a number from 0 on");
    params.prune_budget = *prune_budget;
  }
  params.threshold = threshold;
  params.seed = seed;
  params.first_child = first_child;
  params.batch_bytes = batch_bytes;
  params.scratch_bytes = std::max<int64_t>(scratch_bytes, 0);
  params.most_entries = std::clamp<int64_t>(most_entries, 0, kMostEntries);
  if (room) {
    params.room = reinterpret_cast<char*>(room->data());
    params.room_bytes = static_cast<int64_t>(room->shape(0));
    require(reinterpret_cast<uintptr_t>(params.room) % alignof(float) == 0, "the room must be aligned");
  }
  ChunkLayer layer;
  LevelReport report;
  const Poll poll = poll_python(progress);
  {
    nb::gil_scoped_release nogil;
    train_level(data, params, n_threads, layer, report, poll);
  }
  nb::dict about;
  about["unconverged"] = report.unconverged;
  about["iterations"] = report.iterations;
  about["copies"] = report.copies;
  about["threads"] = report.threads;
  return nb::make_tuple(layer_dict(std::move(layer)), about);
}

nb::dict build_layer_py(Array1<int64_t> indptr, Array1<int32_t> indices, Array1<float> values, int64_t n_cols,
                        Array1<float> bias, Array1<int64_t> child_ptr, int n_threads, int64_t most_entries) {
  const CsrView weights = csr_view(indptr, indices, values, n_cols);
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
               std::optional<Array1<int32_t>> label_of_leaf, int64_t n_features, int n_threads) {
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
  }

  nb::tuple search_sparse(Array1<int64_t> indptr, Array1<int32_t> indices, Array1<float> values, int64_t n_cols,
                          int64_t k, std::vector<int64_t> beams, bool normalize, int n_threads, nb::object filter) {
    Queries queries;
    queries.normalize = normalize;
    queries.sparse = csr_view(indptr, indices, values, n_cols);
    require(n_cols == model_.layers[0].n_features, "queries have another width than the model");
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

  // Raw scores of all children of the first layer, (n, n_children).
  nb::object scores_sparse(Array1<int64_t> indptr, Array1<int32_t> indices, Array1<float> values, int64_t n_cols,
                           bool normalize, int n_threads) {
    Queries queries;
    queries.normalize = normalize;
    queries.sparse = csr_view(indptr, indices, values, n_cols);
    return scores(queries, n_cols, n_threads);
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
  nb::object scores(const Queries& queries, int64_t n_cols, int n_threads) {
    const ChunkLayerView& layer = model_.layers[0];
    require(n_cols == layer.n_features, "queries have another width than the model");
    std::vector<float> out(queries.n() * layer.n_children);
    const Poll poll = poll_python(nb::none());
    {
      nb::gil_scoped_release nogil;
      score_layer(layer, queries, n_threads, out.data(), poll);
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
  std::once_flag indexed_;
  LeafIndex leaves_;  // for filters
  std::mutex mutex_;
  std::vector<ScratchPtr> idle_;
};

}  // namespace

void bind_linear(nb::module_& m) {
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
  m.def("train_level", &train_level_py, nb::arg("indptr"), nb::arg("indices"), nb::arg("values"), nb::arg("n_cols"),
        nb::arg("parent_ptr"), nb::arg("parent_rows"), nb::arg("child_ptr"), nb::arg("positive_ptr"),
        nb::arg("positive_rows"), nb::arg("positive_sign").none(), nb::arg("positive_cost"), nb::arg("negative_cost"),
        nb::arg("row_weight").none(), nb::kw_only(), nb::arg("loss"), nb::arg("dual"), nb::arg("tolerance"),
        nb::arg("max_iter"), nb::arg("bias"), nb::arg("threshold"), nb::arg("seed"), nb::arg("batch_bytes"),
        nb::arg("n_threads"), nb::arg("progress").none(), nb::arg("regularize_bias") = true, nb::arg("l2") = 1.0f,
        nb::arg("l1") = 0.0f, nb::arg("smoothing") = 0.1f, nb::arg("start") = static_cast<int>(Start::mean_separating),
        nb::arg("prune_budget").none() = nb::none(), nb::arg("first_child") = 0, nb::arg("from").none() = nb::none(),
        nb::arg("known_row").none() = nb::none(), nb::arg("known_positive").none() = nb::none(),
        nb::arg("room").none() = nb::none(), nb::arg("parent_weight").none() = nb::none(),
        nb::arg("scratch_bytes") = INT64_MAX, nb::arg("most_entries") = kMostEntries);
  m.def("search_block", &search_block, nb::arg("n"), nb::arg("n_threads"));
  m.def("gathered_bytes", &gathered_bytes, nb::arg("n_rows"), nb::arg("nnz"));
  m.def("worker_bytes", &worker_bytes, nb::arg("n_rows"), nb::arg("nnz"), nb::arg("n_cols"), nb::arg("dual"));
  m.def("numa_cpus", [](int n_threads) { return numa_nodes(n_threads).cpus(); }, nb::arg("n_threads"));
  m.def("build_layer", &build_layer_py, nb::arg("indptr"), nb::arg("indices"), nb::arg("values"), nb::arg("n_cols"),
        nb::arg("bias"), nb::arg("child_ptr"), nb::arg("n_threads"), nb::arg("most_entries") = kMostEntries);
  m.def("layer_weights", &layer_weights_py);
  nb::class_<BeamSearcher>(m, "BeamSearcher")
      .def(nb::init<nb::list, Array1<int32_t>, Array1<int32_t>, std::optional<Array1<int32_t>>, int64_t, int>(),
           nb::arg("layers"), nb::arg("transforms"), nb::arg("powers"), nb::arg("label_of_leaf").none(),
           nb::arg("n_features"), nb::arg("n_threads") = 1)
      .def("search_sparse", &BeamSearcher::search_sparse, nb::arg("indptr"), nb::arg("indices"), nb::arg("values"),
           nb::arg("n_cols"), nb::arg("k"), nb::arg("beams"), nb::arg("normalize"), nb::arg("n_threads"),
           nb::arg("filter").none() = nb::none())
      .def("search_dense", &BeamSearcher::search_dense, nb::arg("matrix"), nb::arg("k"), nb::arg("beams"),
           nb::arg("normalize"), nb::arg("n_threads"), nb::arg("filter").none() = nb::none())
      .def("entries_read", &BeamSearcher::entries)
      .def("scores_sparse", &BeamSearcher::scores_sparse)
      .def("scores_dense", &BeamSearcher::scores_dense);
}

}  // namespace lt::bind
