#include "bindings/arrays.h"
#include "kernels/fusion/boosted_trees.h"
#include "kernels/fusion/pairs.h"

namespace lt::bind {

namespace {

using SourceIds = std::vector<Array2<int32_t>>;
using SourceValues = std::vector<Array2<float>>;

std::vector<Answers> checked_sources(const SourceIds& ids, const SourceValues& values, int64_t n_labels) {
  require(!ids.empty() && ids.size() == values.size(), "there must be as many values as ids, and some");
  std::vector<Answers> sources;
  for (size_t s = 0; s < ids.size(); ++s) {
    require(ids[s].shape(0) == ids[0].shape(0), "sources must have answered the same rows");
    require(ids[s].shape(0) == values[s].shape(0) && ids[s].shape(1) == values[s].shape(1),
            "ids and values must have the same shape");
    bool within = true;
    const int32_t* p = ids[s].data();
    for (size_t i = 0; i < ids[s].size(); ++i) within &= p[i] < n_labels;
    require(within, "a label id is out of range");
    sources.push_back({static_cast<int64_t>(ids[s].shape(1)), p, values[s].data()});
  }
  return sources;
}

// Trees as they arrive; whoever answers with them need not doubt a node.
struct TreeArgs {
  Array1<int32_t> roots, feature;
  Array1<float> threshold;
  Array1<int32_t> child;
  Array1<double> value;
  double base;

  TreeArrays checked(int64_t n_features) const {
    const int64_t n = static_cast<int64_t>(feature.shape(0));
    require(static_cast<int64_t>(threshold.shape(0)) == n && static_cast<int64_t>(child.shape(0)) == n &&
                static_cast<int64_t>(value.shape(0)) == n,
            "arrays of trees must have one entry per node");
    bool sound = true;
    for (int64_t i = 0; i < n; ++i) {
      const int32_t f = feature.data()[i], c = child.data()[i];
      sound &= f >= -1 && f < n_features && (f < 0 || (c > i && c + 1 < n));
    }
    for (size_t t = 0; t < roots.shape(0); ++t) sound &= roots.data()[t] >= 0 && roots.data()[t] < n;
    require(sound, "a node of a tree is out of range");
    return {static_cast<int64_t>(roots.shape(0)),
            roots.data(),
            feature.data(),
            threshold.data(),
            child.data(),
            value.data(),
            base};
  }
};

}  // namespace

void bind_fusion(nb::module_& m) {
  m.def(
      "fit_boosted_trees",
      [](Array2<float> rows, Array1<float> targets, Array1<float> weights, Array1<int64_t> edge_offsets,
         Array1<float> edges, int64_t n_trees, int64_t n_leaves, int64_t min_rows, double rate, double l2,
         int n_threads, const nb::object& progress) {
        const MatrixView<const float> X = matrix_view(rows);
        require(static_cast<int64_t>(targets.shape(0)) == X.n_rows, "there must be one target per row");
        require(static_cast<int64_t>(weights.shape(0)) == X.n_rows, "there must be one weight per row");
        require(X.n_rows > 0 && X.n_rows < (int64_t{1} << 31), "there must be rows, and fewer than 2^31");
        require(static_cast<int64_t>(edge_offsets.shape(0)) == X.n_cols + 1, "there must be edges for every feature");
        check_offsets(edge_offsets.data(), X.n_cols, static_cast<int64_t>(edges.shape(0)), "edge_offsets");
        for (int64_t f = 0; f < X.n_cols; ++f)
          require(edge_offsets.data()[f + 1] - edge_offsets.data()[f] <= 255, "a feature has at most 255 edges");
        require(n_trees >= 0 && n_leaves >= 1 && min_rows >= 1 && rate > 0 && l2 >= 0, "no such options of boosting");
        BoostedTrees out;
        {
          const Poll poll = poll_python(progress);
          nb::gil_scoped_release nogil;
          fit_boosted_trees(X, targets.data(), weights.data(), {edge_offsets.data(), edges.data()},
                            {n_trees, n_leaves, min_rows, rate, l2}, n_threads, poll, &out);
        }
        return nb::make_tuple(to_numpy(std::move(out.roots)), to_numpy(std::move(out.feature)),
                              to_numpy(std::move(out.threshold)), to_numpy(std::move(out.child)),
                              to_numpy(std::move(out.value)), out.base);
      },
      nb::arg("rows"), nb::arg("targets"), nb::arg("weights"), nb::arg("edge_offsets"), nb::arg("edges"),
      nb::arg("n_trees"), nb::arg("n_leaves"), nb::arg("min_rows"), nb::arg("rate"), nb::arg("l2"),
      nb::arg("n_threads"), nb::arg("progress") = nb::none());
  m.def(
      "boosted_scores",
      [](Array2<float> rows, Array1<int32_t> roots, Array1<int32_t> feature, Array1<float> threshold,
         Array1<int32_t> child, Array1<double> value, double base, int n_threads) {
        const MatrixView<const float> X = matrix_view(rows);
        const TreeArrays trees = TreeArgs{roots, feature, threshold, child, value, base}.checked(X.n_cols);
        std::vector<double> out(X.n_rows);
        {
          nb::gil_scoped_release nogil;
          boosted_scores(X, trees, n_threads, out.data());
        }
        return to_numpy(std::move(out));
      },
      nb::arg("rows"), nb::arg("roots"), nb::arg("feature"), nb::arg("threshold"), nb::arg("child"), nb::arg("value"),
      nb::arg("base"), nb::arg("n_threads"));
  m.def(
      "collect_pairs",
      [](const SourceIds& ids, const SourceValues& values, Array1<float> log_counts, int n_threads) {
        const auto sources = checked_sources(ids, values, static_cast<int64_t>(log_counts.shape(0)));
        Pairs out;
        {
          nb::gil_scoped_release nogil;
          out = collect_pairs(sources, static_cast<int64_t>(ids[0].shape(0)), log_counts.data(), n_threads);
        }
        const std::vector<size_t> shape{out.ids.size(),
                                        static_cast<size_t>(n_pair_features(static_cast<int64_t>(sources.size())))};
        return nb::make_tuple(to_numpy(std::move(out.offsets)), to_numpy(std::move(out.ids)),
                              to_numpy(std::move(out.features), shape));
      },
      nb::arg("ids"), nb::arg("values"), nb::arg("log_counts"), nb::arg("n_threads"));
  m.def(
      "fuse_topk",
      [](const SourceIds& ids, const SourceValues& values, Array1<float> log_counts, Array1<int32_t> roots,
         Array1<int32_t> feature, Array1<float> threshold, Array1<int32_t> child, Array1<double> value, double base,
         int64_t k, int n_threads) {
        const auto sources = checked_sources(ids, values, static_cast<int64_t>(log_counts.shape(0)));
        const TreeArrays trees = TreeArgs{roots, feature, threshold, child, value, base}.checked(
            n_pair_features(static_cast<int64_t>(sources.size())));
        require(k >= 1, "k must be positive");
        Ranked out(static_cast<int64_t>(ids[0].shape(0)), k);
        {
          nb::gil_scoped_release nogil;
          fuse_answers(sources, static_cast<int64_t>(ids[0].shape(0)), log_counts.data(), trees, k, n_threads,
                       out.ids.data(), out.scores.data());
        }
        return out.take();
      },
      nb::arg("ids"), nb::arg("values"), nb::arg("log_counts"), nb::arg("roots"), nb::arg("feature"),
      nb::arg("threshold"), nb::arg("child"), nb::arg("value"), nb::arg("base"), nb::arg("k"), nb::arg("n_threads"));
}

}  // namespace lt::bind
