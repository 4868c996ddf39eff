#include "kernels/fusion/boosted_trees.h"

#include <algorithm>
#include <cmath>

namespace lt {

namespace {

constexpr int64_t kHistogramBins = 256;
constexpr int64_t kSlopesPerTask = 1 << 14;
constexpr int64_t kFewRows = 1 << 13;  // below which waking threads costs more than they save

struct PairSlope {
  float gradient, curvature;
};

struct BinCell {
  double gradient = 0, curvature = 0;
  int64_t count = 0;
};

struct BinSplit {
  double gain = 0;
  int32_t feature = -1;
  int32_t bin = 0;
};

struct GrowingLeaf {
  int64_t begin, end;  // of the rows, in the order of the tree
  int32_t node;
  BinCell total;
  std::vector<BinCell> histogram;  // (n_features, kHistogramBins)
  BinSplit split;
};

class TreeGrower {
 public:
  TreeGrower(const MatrixView<const float>& rows, const float* targets, const float* weights, const BinEdges& edges,
             const BoostOptions& options, int n_threads, const Poll& poll)
      : n_(rows.n_rows),
        d_(rows.n_cols),
        targets_(targets),
        weights_(weights),
        edges_(edges),
        options_(options),
        poll_(poll),
        team_(n_threads),
        bins_(n_ * d_),
        order_(n_),
        spare_(n_),
        slopes_(n_),
        ordered_(n_),
        scores_(n_) {
    team_.run(d_, [&](int64_t f, int) {
      const float* first = edges.values + edges.offsets[f];
      const float* last = edges.values + edges.offsets[f + 1];
      for (int64_t i = 0; i < n_; ++i)
        bins_[f * n_ + i] = static_cast<uint8_t>(std::lower_bound(first, last, rows.data[i * d_ + f]) - first);
    });
  }

  bool fit(BoostedTrees* out) {
    double hits = 0, all = 0;
    for (int64_t i = 0; i < n_; ++i) {
      hits += static_cast<double>(weights_[i]) * targets_[i];
      all += weights_[i];
    }
    const double share = (hits + 0.5) / (all + 1);
    out->base = std::log(share / (1 - share));
    std::fill(scores_.begin(), scores_.end(), out->base);
    for (int64_t t = 0; t < options_.n_trees; ++t) {
      if (poll_ && !poll_(t, options_.n_trees)) return false;
      find_slopes();
      grow(out);
    }
    return true;
  }

 private:
  void find_slopes() {
    team_.run_blocks(n_, kSlopesPerTask, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) {
        const double p = 1 / (1 + std::exp(-scores_[i]));
        const double w = weights_[i];
        slopes_[i] = {static_cast<float>(w * (p - targets_[i])), static_cast<float>(w * std::max(p * (1 - p), 1e-12))};
      }
    });
  }

  void grow(BoostedTrees* out) {
    for (int64_t i = 0; i < n_; ++i) order_[i] = static_cast<int32_t>(i);
    std::vector<GrowingLeaf> leaves;
    out->roots.push_back(add_node(out));
    leaves.push_back({0, n_, out->roots.back(), {}, {}, {}});
    count(&leaves[0]);
    find_split(&leaves[0]);
    while (static_cast<int64_t>(leaves.size()) < options_.n_leaves) {
      size_t best = 0;
      for (size_t i = 1; i < leaves.size(); ++i)
        if (leaves[i].split.gain > leaves[best].split.gain) best = i;
      if (leaves[best].split.feature < 0) break;
      divide(best, &leaves, out);
    }
    for (const GrowingLeaf& leaf : leaves) {
      const double step = -options_.rate * leaf.total.gradient / (leaf.total.curvature + options_.l2);
      out->value[leaf.node] = step;
      for (int64_t p = leaf.begin; p < leaf.end; ++p) scores_[order_[p]] += step;
    }
  }

  static int32_t add_node(BoostedTrees* out) {
    out->feature.push_back(-1);
    out->threshold.push_back(0);
    out->child.push_back(0);
    out->value.push_back(0);
    return static_cast<int32_t>(out->feature.size() - 1);
  }

  // Replaces a leaf by its two halves: the rows of the smaller one are counted, those of the other are what is left.
  void divide(size_t which, std::vector<GrowingLeaf>* leaves, BoostedTrees* out) {
    GrowingLeaf parent = std::move((*leaves)[which]);
    const BinSplit split = parent.split;
    out->feature[parent.node] = split.feature;
    out->threshold[parent.node] = edges_.values[edges_.offsets[split.feature] + split.bin];
    const int32_t child = add_node(out);
    add_node(out);
    out->child[parent.node] = child;
    const uint8_t* bins = bins_.data() + split.feature * n_;
    int64_t left = parent.begin, right = 0;
    for (int64_t p = parent.begin; p < parent.end; ++p) {  // stable: rows stay in order
      const int32_t row = order_[p];
      if (bins[row] <= split.bin)
        order_[left++] = row;
      else
        spare_[right++] = row;
    }
    std::copy(spare_.begin(), spare_.begin() + right, order_.begin() + left);
    GrowingLeaf a{parent.begin, left, child, {}, {}, {}}, b{left, parent.end, child + 1, {}, {}, {}};
    GrowingLeaf& small = a.end - a.begin <= b.end - b.begin ? a : b;
    GrowingLeaf& large = &small == &a ? b : a;
    count(&small);
    large.histogram = std::move(parent.histogram);
    for (size_t i = 0; i < large.histogram.size(); ++i) take(small.histogram[i], &large.histogram[i]);
    large.total = parent.total;
    take(small.total, &large.total);
    find_split(&a);
    find_split(&b);
    (*leaves)[which] = std::move(a);
    leaves->push_back(std::move(b));
  }

  static void take(const BinCell& part, BinCell* whole) {
    whole->gradient -= part.gradient;
    whole->curvature -= part.curvature;
    whole->count -= part.count;
  }

  // Fills the histogram and the total of a leaf.
  void count(GrowingLeaf* leaf) {
    const int64_t m = leaf->end - leaf->begin;
    const int32_t* rows = order_.data() + leaf->begin;
    leaf->histogram.assign(d_ * kHistogramBins, {});
    for (int64_t p = 0; p < m; ++p) {
      const PairSlope slope = ordered_[p] = slopes_[rows[p]];
      leaf->total.gradient += slope.gradient;
      leaf->total.curvature += slope.curvature;
    }
    leaf->total.count = m;
    each_feature(m, [&](int64_t f) {
      BinCell* cells = leaf->histogram.data() + f * kHistogramBins;
      const uint8_t* bins = bins_.data() + f * n_;
      for (int64_t p = 0; p < m; ++p) {
        BinCell& cell = cells[bins[rows[p]]];
        cell.gradient += ordered_[p].gradient;
        cell.curvature += ordered_[p].curvature;
        ++cell.count;
      }
    });
  }

  // The best split of a leaf; equal gains go to the smaller feature and the smaller bin.
  void find_split(GrowingLeaf* leaf) {
    const BinCell& all = leaf->total;
    if (all.count < 2 * options_.min_rows) return;
    const double whole = value_of(all.gradient, all.curvature);
    for (int64_t f = 0; f < d_; ++f) {
      const BinCell* cells = leaf->histogram.data() + f * kHistogramBins;
      const int64_t n_edges = edges_.offsets[f + 1] - edges_.offsets[f];
      double gradient = 0, curvature = 0;
      int64_t below = 0;
      for (int64_t b = 0; b < n_edges; ++b) {
        gradient += cells[b].gradient;
        curvature += cells[b].curvature;
        below += cells[b].count;
        if (below < options_.min_rows) continue;
        if (all.count - below < options_.min_rows) break;
        const double gain =
            value_of(gradient, curvature) + value_of(all.gradient - gradient, all.curvature - curvature) - whole;
        if (gain > leaf->split.gain + 1e-9) leaf->split = {gain, static_cast<int32_t>(f), static_cast<int32_t>(b)};
      }
    }
  }

  double value_of(double gradient, double curvature) const {
    return gradient * gradient / (std::max(curvature, 1e-12) + options_.l2);
  }

  template <class Body>
  void each_feature(int64_t m, const Body& body) {
    if (m < kFewRows) {
      for (int64_t f = 0; f < d_; ++f) body(f);
    } else {
      team_.run(d_, [&](int64_t f, int) { body(f); });
    }
  }

  const int64_t n_, d_;
  const float *targets_, *weights_;
  const BinEdges edges_;
  const BoostOptions options_;
  const Poll& poll_;
  Team team_;
  std::vector<uint8_t> bins_;           // (d, n)
  std::vector<int32_t> order_, spare_;  // rows, those of a leaf side by side
  std::vector<PairSlope> slopes_, ordered_;
  std::vector<double> scores_;
};

}  // namespace

bool fit_boosted_trees(const MatrixView<const float>& rows, const float* targets, const float* weights,
                       const BinEdges& edges, const BoostOptions& options, int n_threads, const Poll& poll,
                       BoostedTrees* out) {
  return TreeGrower(rows, targets, weights, edges, options, n_threads, poll).fit(out);
}

void boosted_scores(const MatrixView<const float>& rows, const TreeArrays& trees, int n_threads, double* out) {
  constexpr int64_t kScoredRows = 1024;
  parallel_blocks(rows.n_rows, kScoredRows, n_threads, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) out[i] = trees.score(rows.data + i * rows.n_cols);
  });
}

}  // namespace lt
