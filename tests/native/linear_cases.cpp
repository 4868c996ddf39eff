// Training, building and searching trees; label features and clustering.
#include <memory>

#include "driver.h"
#include "kernels/base/canonical.h"
#include "kernels/base/unit_rows.h"
#include "kernels/linear/beam_search.h"
#include "kernels/linear/level_training.h"
#include "kernels/tree/balanced_kmeans.h"
#include "kernels/tree/label_features.h"
#include "kernels/tree/node_labels.h"

namespace lt::driver {

namespace {

const Poll kGoOn = [](int64_t, int64_t) { return true; };

void add_layer(const ChunkLayer& layer, Digest& digest) {
  digest.add(layer.chunk_children);
  digest.add(layer.feature_ptr);
  digest.add(layer.buckets);
  digest.add(layer.features);
  digest.add(layer.entry_ptr);
  digest.add(layer.child);
  digest.add(layer.value);
  digest.add(layer.bias);
}

// Rows and their labels for one level of a tree: three parents, each with its own rows and children.
struct LevelInputs {
  Csr X = random_csr(500, 300, 20, 1);
  std::vector<int64_t> parent_ptr{0}, child_ptr{0, 40, 57, 120}, positive_ptr{0};
  std::vector<int32_t> parent_rows, positive_rows;
  std::vector<float> positive_cost, negative_cost, row_weight;
  // Where a training may begin, and what that start knows.
  Csr start = random_csr(120, 300, 30, 9, 0.2f);
  CsrView start_view = start.view();
  std::vector<float> start_bias = random_floats(120, 10, -1.0f, 0.0f);
  std::vector<uint8_t> known_row, known_positive;
  std::vector<float> dense = random_floats(500 * 20, 11, -0.3f, 0.3f);

  LevelInputs() {
    for (int64_t parent = 0; parent < 3; ++parent) {
      for (int32_t row = 0; row < 500; ++row)
        if (row % 3 != parent) parent_rows.push_back(row);
      const int64_t begin = parent_ptr.back(), end = static_cast<int64_t>(parent_rows.size());
      parent_ptr.push_back(end);
      for (int64_t child = child_ptr[parent]; child < child_ptr[parent + 1]; ++child) {
        for (int64_t r = begin; r < end; ++r)
          if (hash64(5, child, parent_rows[r]) % 16 == 0) positive_rows.push_back(parent_rows[r]);
        positive_ptr.push_back(static_cast<int64_t>(positive_rows.size()));
      }
    }
    positive_cost = random_floats(static_cast<int64_t>(positive_rows.size()), 6, 0.5f, 2.0f);
    negative_cost = random_floats(child_ptr.back(), 7, 0.5f, 1.0f);
    row_weight = random_floats(500, 8, 0.5f, 1.0f);
    for (int32_t row = 0; row < 500; ++row) known_row.push_back(row % 2 == 0);
    for (int32_t row : positive_rows) known_positive.push_back(row % 2 == 0);
  }

  LevelData data() const {
    LevelData out;
    out.X = X.view();
    out.n_parents = 3;
    out.parent_ptr = parent_ptr.data();
    out.parent_rows = parent_rows.data();
    out.child_ptr = child_ptr.data();
    out.positive_ptr = positive_ptr.data();
    out.positive_rows = positive_rows.data();
    out.positive_cost = positive_cost.data();
    out.negative_cost = negative_cost.data();
    out.row_weight = row_weight.data();
    return out;
  }

  LevelData with_dense() const {
    LevelData out = data();
    out.dense = {500, 20, dense.data()};
    return out;
  }

  LevelData continued() const {
    LevelData out = data();
    out.start = &start_view;
    out.start_bias = start_bias.data();
    out.known_row = known_row.data();
    out.known_positive = known_positive.data();
    return out;
  }
};

enum class Rows { plain, continued, with_dense };

Case training(const std::string& name, bool dual, Loss loss, int64_t batch_bytes, Rows rows = Rows::plain) {
  auto inputs = std::make_shared<LevelInputs>();
  return {name, [=](int n_threads, Digest& digest) {
            LevelParams params;
            params.dual = dual;
            params.solver.loss = loss;
            params.solver.max_iter = 5;
            params.threshold = 0.01f;
            params.batch_bytes = batch_bytes;
            ChunkLayer layer;
            LevelReport report;
            const LevelData data = rows == Rows::continued    ? inputs->continued()
                                   : rows == Rows::with_dense ? inputs->with_dense()
                                                              : inputs->data();
            train_level(data, params, n_threads, layer, report, kGoOn);
            add_layer(layer, digest);
            digest.add(&report.iterations, 1);
          }};
}

ChunkLayerView view_of(const ChunkLayer& layer, int64_t n_features) {
  ChunkLayerView out;
  out.n_parents = static_cast<int64_t>(layer.parent_chunks.size()) - 1;
  out.n_children = static_cast<int64_t>(layer.bias.size());
  out.n_chunks = static_cast<int64_t>(layer.chunk_children.size()) - 1;
  out.n_features = n_features;
  out.parent_chunks = layer.parent_chunks.data();
  out.chunk_children = layer.chunk_children.data();
  out.feature_ptr = layer.feature_ptr.data();
  out.entry_base = layer.entry_base.data();
  out.bucket_ptr = layer.bucket_ptr.data();
  out.bucket_shift = layer.bucket_shift.data();
  out.buckets = layer.buckets.data();
  out.features = layer.features.data();
  out.entry_ptr = layer.entry_ptr.data();
  out.child = layer.child.data();
  out.value = layer.value.data();
  out.bias = layer.bias.data();
  return out;
}

// A tree of 8 nodes with 40 leaves each, its weights random.
struct Tree {
  static constexpr int64_t kFeatures = 300;
  ChunkLayer top, bottom;
  SearchModel model;
  LeafIndex leaves;
  Csr queries = random_csr(700, kFeatures, 15, 21);
  std::vector<int64_t> deny_ptr{0};
  std::vector<int32_t> denied;

  Tree() {
    build(8, {0, 8}, 22, top);
    std::vector<int64_t> cut;
    for (int64_t node = 0; node <= 8; ++node) cut.push_back(40 * node);
    build(320, cut, 23, bottom);
    model.layers = {view_of(top, kFeatures), view_of(bottom, kFeatures)};
    model.post = {PostProcessor{}, PostProcessor{}};
    leaves = index_leaves(model.layers, nullptr);
    for (int64_t row = 0; row < 700; ++row) {
      for (int32_t label = static_cast<int32_t>(row % 5); label < 320; label += 5) denied.push_back(label);
      deny_ptr.push_back(static_cast<int64_t>(denied.size()));
    }
  }

  static void build(int64_t n_children, const std::vector<int64_t>& cut, uint64_t seed, ChunkLayer& layer) {
    const Csr weights = random_csr(n_children, kFeatures, 60, seed);
    const std::vector<float> bias = random_floats(n_children, seed + 100, -1.0f, 1.0f);
    build_layer(weights.view(), bias.data(), static_cast<int64_t>(cut.size()) - 1, cut.data(), 4, layer);
  }

  // The same tree for queries whose last columns are dense.
  Csr sparse_block = random_csr(700, kFeatures - 20, 15, 24);
  std::vector<float> dense_block = random_floats(700 * 20, 25, -0.3f, 0.3f);
  std::vector<OwnedDenseTable> tables;

  Queries asked_in_blocks() {
    for (const ChunkLayerView& layer : model.layers) tables.emplace_back(layer, 20, 4);
    for (const OwnedDenseTable& table : tables) model.tables.push_back(table.view());
    Queries out;
    out.normalize = true;
    out.sparse = sparse_block.view();
    out.matrix = {700, 20, dense_block.data()};
    return out;
  }

  Queries asked() const {
    Queries out;
    out.normalize = true;
    out.sparse = queries.view();
    return out;
  }
};

Case searching(const std::string& name, bool filtered, bool blocks = false) {
  auto tree = std::make_shared<Tree>();
  const Queries queries = blocks ? tree->asked_in_blocks() : tree->asked();
  return {name, [=](int n_threads, Digest& digest) {
            Answers out(700, 10);
            std::vector<ScratchPtr> scratch;
            TreeFilter filter;
            filter.leaves = &tree->leaves;
            filter.lists.exclude.ptr = tree->deny_ptr.data();
            filter.lists.exclude.ids = tree->denied.data();
            for (int again = 0; again < 2; ++again)  // scratch is used again
              beam_search(tree->model, queries, {3}, 10, n_threads, scratch, out.ids.data(), out.scores.data(), kGoOn,
                          filtered ? &filter : nullptr);
            out.digest(digest);
          }};
}

Case scoring_a_layer() {
  auto tree = std::make_shared<Tree>();
  return {"score_layer", [=](int n_threads, Digest& digest) {
            std::vector<float> out(700 * 320);
            score_layer(tree->model.layers[1], nullptr, tree->asked(), n_threads, out.data(), kGoOn);
            digest.add(out);
          }};
}

Case building_a_layer() {
  auto weights = std::make_shared<Csr>(random_csr(200, 300, 40, 31));
  return {"build_layer", [=](int n_threads, Digest& digest) {
            const std::vector<float> bias(200, 0.5f);
            std::vector<int64_t> cut;
            for (int64_t node = 0; node <= 20; ++node) cut.push_back(10 * node);
            ChunkLayer layer;
            build_layer(weights->view(), bias.data(), 20, cut.data(), n_threads, layer);
            add_layer(layer, digest);
          }};
}

// A layer large enough to be checked by several threads, and its last columns laid out for queries with a dense block.
Case checking_a_layer() {
  constexpr int64_t kChildren = 1100, kWide = 4000;
  auto layer = std::make_shared<ChunkLayer>();
  Csr weights;
  weights.n_cols = kWide;
  for (int64_t child = 0; child < kChildren; ++child) {
    for (int32_t feature = 0; feature < kWide; ++feature) weights.indices.push_back(feature);
    weights.indptr.push_back(kWide * (child + 1));
  }
  weights.values = random_floats(kChildren * kWide, 81, -1.0f, 1.0f);
  const std::vector<float> bias(kChildren, 0.5f);
  std::vector<int64_t> cut;
  for (int64_t node = 0; node <= 11; ++node) cut.push_back(100 * node);
  build_layer(weights.view(), bias.data(), 11, cut.data(), 4, *layer);
  return {"check_layer, OwnedDenseTable", [=](int n_threads, Digest& digest) {
            const ChunkLayerView view = view_of(*layer, kWide);
            check_layer(view, static_cast<int64_t>(layer->features.size()),
                        static_cast<int64_t>(layer->entry_ptr.size()), static_cast<int64_t>(layer->value.size()),
                        static_cast<int64_t>(layer->buckets.size()), n_threads);
            const OwnedDenseTable owned(view, 20, n_threads);
            const DenseTable table = owned.view();
            digest.add(table.weights, kChildren * table.stride);
          }};
}

Case label_features(int64_t max_features) {
  auto X = std::make_shared<Csr>(random_csr(600, 300, 20, 41));
  auto labels = std::make_shared<Csr>(transposed(random_csr(600, 500, 6, 42)));
  return {"sum_positive_rows", [=](int n_threads, Digest& digest) {
            OwnedCsr out;
            sum_positive_rows(X->view(), labels->view(), max_features, n_threads, out, kGoOn);
            digest.add(out.indptr);
            digest.add(out.indices);
            digest.add(out.values);
            const std::vector<float> rows = random_floats(600 * 20, 43);
            std::vector<float> dense(500 * 20);
            sum_positive_rows(MatrixView<const float>{600, 20, rows.data()}, labels->view(), n_threads,
                              {500, 20, dense.data()}, kGoOn);
            digest.add(dense);
          }};
}

// `large` decides whether splits are spread over the threads or run side by side.
Case clustering(const std::string& name, int64_t large, int64_t n = 3000, int64_t per_row = 12) {
  auto rows = std::make_shared<Csr>(random_csr(n, 400, per_row, 51));
  return {name, [=](int n_threads, Digest& digest) {
            std::vector<Split> splits{{0, n / 2, n}, {0, n / 4, n / 2}, {n / 2, 3 * n / 4, n}};
            const std::vector<int64_t> rounds{0, 1, 3};
            std::vector<int32_t> order(n);
            std::iota(order.begin(), order.end(), 0);
            SplitParams params;
            params.max_iter = 4;
            params.large = large;
            balanced_splits(rows->view(), splits.data(), rounds.data(), 2, params, n_threads, order.data(), kGoOn);
            digest.add(order);
          }};
}

Case clustering_dense_rows() {
  constexpr int64_t kRows = 3000, kColumns = 30;
  auto rows = std::make_shared<std::vector<float>>(random_floats(kRows * kColumns, 52, -1.0f, 1.0f));
  return {"balanced_splits, dense rows", [=](int n_threads, Digest& digest) {
            const Split split{0, kRows / 2, kRows};
            const std::vector<int64_t> rounds{0, 1};
            for (const int64_t large : {int64_t{1}, int64_t{1} << 40}) {
              std::vector<int32_t> order(kRows);
              std::iota(order.begin(), order.end(), 0);
              SplitParams params;
              params.max_iter = 4;
              params.large = large;
              balanced_splits(MatrixView<const float>{kRows, kColumns, rows->data()}, &split, rounds.data(), 1, params,
                              n_threads, order.data(), kGoOn);
              digest.add(order);
            }
          }};
}

Case moving_labels_up() {
  auto Y = std::make_shared<Csr>(random_csr(20000, 64, 4, 61));
  return {"node_labels", [=](int n_threads, Digest& digest) {
            std::vector<int32_t> node_of(64);
            for (int32_t label = 0; label < 64; ++label) node_of[label] = label / 8;
            for (NodeValue value : {NodeValue::one, NodeValue::sum, NodeValue::max}) {
              const NodeLabels out = node_labels(Y->view(), node_of.data(), value, n_threads);
              digest.add(out.indptr);
              digest.add(out.indices);
              digest.add(out.values);
            }
          }};
}

Case order_of_columns() {
  auto good = std::make_shared<Csr>(random_csr(150'000, 1000, 20, 81));
  auto bad = std::make_shared<Csr>(*good);
  int64_t first = 70'000;  // of three rows that have a column too many
  while (good->view().row_nnz(first) == 0) ++first;
  for (const int64_t entry : {bad->indptr[first], bad->indptr[120'000], bad->indptr.back() - 1})
    bad->indices[entry] = 1000;
  return {"check_rows", [=](int n_threads, Digest& digest) {
            check_rows(good->view(), n_threads);
            std::string message;
            try {
              check_rows(bad->view(), n_threads);
            } catch (const std::invalid_argument& error) {
              message = error.what();
            }
            if (message.find("row " + std::to_string(first) + " ") == std::string::npos)
              throw std::logic_error("not the first row: " + message);
            digest.add(message.data(), message.size());
          }};
}

Case unit_length() {
  auto X = std::make_shared<Csr>(random_csr(20000, 100, 6, 71));
  return {"unit_rows", [=](int n_threads, Digest& digest) {
            std::vector<float> out(X->values.size());
            unit_rows(20000, X->indptr.data(), X->values.data(), n_threads, out.data());
            digest.add(out);
          }};
}

}  // namespace

std::vector<Case> linear_cases() {
  return {training("train_level, dual", true, Loss::squared_hinge, int64_t{1} << 30),
          training("train_level, dual, small batches", true, Loss::hinge, 1 << 12),
          training("train_level, dual, continued", true, Loss::squared_hinge, int64_t{1} << 30, Rows::continued),
          training("train_level, dual, dense block", true, Loss::squared_hinge, 1 << 12, Rows::with_dense),
          training("train_level, Newton, dense block", false, Loss::logistic, 1 << 12, Rows::with_dense),
          training("train_level, Newton", false, Loss::logistic, int64_t{1} << 30),
          searching("beam_search", false),
          searching("beam_search, a deny list per row", true),
          searching("beam_search, dense block", false, true),
          scoring_a_layer(),
          building_a_layer(),
          checking_a_layer(),
          label_features(0),
          label_features(10),
          clustering("balanced_splits, spread", 1),
          clustering("balanced_splits, side by side", int64_t{1} << 40),
          clustering("balanced_splits, many rows", 1, 160000, 2),
          clustering_dense_rows(),
          moving_labels_up(),
          unit_length(),
          order_of_columns()};
}

}  // namespace lt::driver
