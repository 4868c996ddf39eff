#include "kernels/linear/beam_search.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/base/best_k.h"
#include "kernels/linear/chunk_scores.h"

namespace lt {

namespace {

constexpr int64_t kLeastBlock = 8, kLargestBlock = 2048;  // queries

float power(float x, int32_t p) {
  float result = x;
  for (int32_t i = 1; i < p; ++i) result *= x;
  return result;
}

// Logarithm of the transformed score; for noop the score itself.
float log_score(const PostProcessor& post, float z) {
  switch (post.transform) {
    case Transform::noop:
      return z;
    case Transform::hinge:
    case Transform::log_hinge: {
      const float slack = 1 - z;
      return slack > 0 ? -power(slack, post.power) : 0.0f;
    }
    default:
      return z > 0 ? -std::log1p(std::exp(-z)) : z - std::log1p(std::exp(z));
  }
}

// The smallest z, rounded down, whose log_score reaches `wanted`; not for noop.
float least_z(const PostProcessor& post, float wanted) {
  float z;
  switch (post.transform) {
    case Transform::hinge:
    case Transform::log_hinge:
      z = wanted < 0 ? 1 - std::pow(-wanted, 1.0f / static_cast<float>(post.power)) : 1.0f;
      break;
    default:
      z = wanted < 0 ? -std::log(std::expm1(-wanted)) : kInf;
      if (!(z < 80.0f)) z = 15.0f;  // the sigmoid is flat there in float32
      break;
  }
  return z - 1e-4f * (1 + std::fabs(z));
}

// How low a child of a parent of score `base` may lie and still be among the best: the threshold, and a little below
// for the roundings on the way.
float lowest_useful(const BestK& candidates, float base) {
  const float lowest = candidates.threshold;
  return lowest == -kInf ? lowest : lowest - 5e-7f * (1 + std::fabs(lowest) + std::fabs(base));
}

struct Expansion {
  int64_t parent;
  int32_t query;  // within the block
  float score;    // of the parent
};

}  // namespace

struct SearchScratch {
  std::vector<float> z = std::vector<float>(kMaxChunk + 16, 0.0f);
  uint16_t masks[kMaxChunk / 16];
  std::vector<Lookup> lookups;
  int64_t entries = 0;  // weights that were added up since the scratch was made
  std::vector<BestK> candidates;
  std::vector<std::vector<Scored>> beam;
  std::vector<Expansion> work;
  std::vector<double> scale;
  std::vector<TreeBits> bits;  // of each query, under a filter with lists per row
  // For queries with a dense block: those of all, and of the query at hand; what its children have at most; those to
  // look at, and what they have.
  std::vector<OwnedDenseQuery> blocks;
  DenseQuery block;
  std::vector<int32_t> chosen;
  std::vector<float> most_memory = std::vector<float>(kMaxChunk + 16, 0.0f), products;
  BestK seeds;

  float* scores() { return aligned(z); }
  float* most() { return aligned(most_memory); }

 private:
  static float* aligned(std::vector<float>& memory) {  // (kMaxChunk), for vectors
    return reinterpret_cast<float*>((reinterpret_cast<uintptr_t>(memory.data()) + 63) / 64 * 64);
  }
};

ScratchPtr make_scratch() { return std::make_shared<SearchScratch>(); }
int64_t entries_read(const SearchScratch& scratch) { return scratch.entries; }

namespace {

// What a query is multiplied by: 1, or the inverse of its length.
double query_scale(const Queries& queries, int64_t query) {
  if (!queries.normalize) return 1;
  const float* begin = queries.dense ? queries.matrix.row(query) : queries.sparse.values + queries.sparse.begin(query);
  const int64_t n = queries.dense ? queries.matrix.n_cols : queries.sparse.row_nnz(query);
  double sum = 0;
  for (int64_t p = 0; p < n; ++p) sum += static_cast<double>(begin[p]) * begin[p];
  for (int64_t j = 0; queries.blocks() && j < queries.matrix.n_cols; ++j)
    sum += static_cast<double>(queries.matrix.row(query)[j]) * queries.matrix.row(query)[j];
  return sum > 0 ? 1 / std::sqrt(sum) : 1.0;  // in double: the inverse of a tiny length overflows a float
}

QueryRow query_row(const Queries& queries, int64_t query, double scale) {
  if (queries.dense) return {};
  const CsrView& X = queries.sparse;
  return {X.indices + X.begin(query), X.values + X.begin(query), X.row_nnz(query), scale};
}

// A query on its way through a layer, and what comes after it.
struct Asked {
  const Queries& queries;
  int64_t query;
  double scale;
  const int64_t* next = nullptr;  // chunk that will be scored next, or null ...
  QueryRow next_row;              // ... and for which query
};

// z[j] += w_j . x * scale for the children of one chunk and a dense x: every feature of the chunk is looked at.
void add_dense(const ChunkLayerView& layer, int64_t chunk, const float* x, double scale, float* z) {
  const uint32_t* entry_ptr = layer.entry_ptr + layer.feature_ptr[chunk] + chunk;
  const int64_t base = layer.entry_base[chunk];
  for (int64_t f = layer.feature_ptr[chunk]; f < layer.feature_ptr[chunk + 1]; ++f, ++entry_ptr) {
    if (x[layer.features[f]] == 0) continue;
    const float scaled = static_cast<float>(scale * x[layer.features[f]]);
    for (int64_t e = base + entry_ptr[0]; e < base + entry_ptr[1]; ++e)
      z[layer.child[e]] += scaled * value_of_entry(layer, e);
  }
}

// z[j] = w_j . x * scale + bias for the children of one chunk. Returns the number of entries that a sparse query took.
int64_t score_chunk(const ChunkLayerView& layer, int64_t chunk, const Asked& asked, std::vector<Lookup>& lookups,
                    float* z) {
  const int64_t first = layer.chunk_children[chunk], width = layer.chunk_children[chunk + 1] - first;
  const bool steps = layer.precision == WeightType::int8;
  int64_t n_entries = 0;
  if (steps)
    std::fill(z, z + width, 0.0f);
  else
    std::copy(layer.bias + first, layer.bias + first + width, z);
  if (asked.queries.dense) {
    add_dense(layer, chunk, asked.queries.matrix.row(asked.query), asked.scale, z);
  } else {
    const QueryRow row = query_row(asked.queries, asked.query, asked.scale);
    if (static_cast<int64_t>(lookups.size()) < row.n) lookups.resize(row.n);
    n_entries =
        LT_DISPATCH(chunk_kernels).add_products(layer, chunk, row, asked.next, asked.next_row, lookups.data(), z);
  }
  if (steps)
    for (int64_t j = 0; j < width; ++j) z[j] = z[j] * layer.step[first + j] + layer.bias[first + j];
  return n_entries;
}

// Adds the dense block's part to the scores of the chosen children.
void add_block(const DenseTable& table, int64_t first, SearchScratch& scratch, float* z) {
  const int64_t n = static_cast<int64_t>(scratch.chosen.size());
  if (static_cast<int64_t>(scratch.products.size()) < n) scratch.products.resize(n);
  LT_DISPATCH(chunk_kernels)
      .dense_products(table.row(first), table.stride, scratch.block.x, scratch.chosen.data(), n,
                      scratch.products.data());
  for (int64_t c = 0; c < n; ++c) z[scratch.chosen[c]] += scratch.products[c];
}

// A layer on the way of a query: how children are scored, and which may be answers.
struct Level {
  const ChunkLayerView& layer;
  const DenseTable* table;  // for queries with a dense block
  const PostProcessor& post;
  const int32_t* label_of;  // null: children are their own names
};

// One parent of one query: its children become candidates.
class Expanding {
 public:
  Expanding(const Level& level, const Expansion& task, const Bits* allowed, SearchScratch& scratch, BestK& candidates)
      : level_(level),
        task_(task),
        allowed_(allowed),
        scratch_(scratch),
        candidates_(candidates),
        bounded_(level.post.transform != Transform::noop),
        base_(bounded_ ? task.score : 0.0f),
        z_(scratch.scores()) {}

  void run(Asked asked) {
    const ChunkLayerView& layer = level_.layer;
    const int64_t* after = asked.next;
    const QueryRow row_after = asked.next_row;
    const int64_t last = layer.parent_chunks[task_.parent + 1];
    if (level_.table) scratch_.block = scratch_.blocks[task_.query].view();
    for (int64_t chunk = layer.parent_chunks[task_.parent]; chunk < last; ++chunk) {
      if (bounded_ && task_.score < lowest_useful(candidates_, base_)) return;
      chunk_ = chunk;
      first_ = layer.chunk_children[chunk];
      width_ = layer.chunk_children[chunk + 1] - first_;
      if (allowed_ && !allowed_->any(first_, first_ + width_)) continue;
      const int64_t sibling = chunk + 1;
      asked.next = sibling < last ? &sibling : after;
      asked.next_row = sibling < last ? query_row(asked.queries, asked.query, asked.scale) : row_after;
      scratch_.entries += score_chunk(layer, chunk, asked, scratch_.lookups, z_);
      if (level_.table)
        push_with_block();
      else
        push_reaching();
    }
  }

 private:
  // The smallest score that a child must have to be among the best.
  float least() const {
    if (!bounded_) return candidates_.threshold;
    const float lowest = lowest_useful(candidates_, base_);
    return lowest == -kInf ? lowest : least_z(level_.post, lowest - base_);
  }

  bool may(int64_t j) const { return !allowed_ || (*allowed_)[first_ + j]; }

  void push(int64_t j) {
    const int64_t child = first_ + j;
    candidates_.push(base_ + log_score(level_.post, z_[j]),
                     level_.label_of ? level_.label_of[child] : static_cast<int32_t>(child));
  }

  void push_reaching() {
    float cut = least();
    float before = candidates_.threshold;
    LT_DISPATCH(chunk_kernels).reaching(z_, width_, cut, scratch_.masks);
    for (int64_t group = 0; group * 16 < width_; ++group)
      for (uint32_t left = scratch_.masks[group]; left; left &= left - 1) {
        const int64_t j = group * 16 + __builtin_ctz(left);
        if (!(z_[j] >= cut)) continue;  // the bound has risen since
        if (!may(j)) continue;
        push(j);
        if (candidates_.threshold != before) {
          before = candidates_.threshold;
          cut = least();
        }
      }
  }

  // z holds what the sparse columns say. First the children that seem best, so that there is something to reach; then
  // those that may reach it.
  void push_with_block() {
    const ChunkKernels& kernels = LT_DISPATCH(chunk_kernels);
    float* most = scratch_.most();
    kernels.dense_bounds(*level_.table, chunk_, width_, scratch_.block, z_, most);
    const int64_t seeds = candidates_.k + 8;
    if (candidates_.threshold == -kInf && width_ > 4 * seeds) {
      BestK& best = scratch_.seeds;
      best.reset(seeds);
      for (int64_t j = 0; j < width_; ++j)
        if (may(j)) best.push(most[j], static_cast<int32_t>(j));
      const int64_t kept = best.finish();
      scratch_.chosen.clear();
      for (int64_t s = 0; s < kept; ++s) scratch_.chosen.push_back(best.items[s].id);
      push_chosen();
      for (int32_t j : scratch_.chosen) most[j] = -kInf;  // done
      candidates_.prune();
    }
    kernels.reaching(most, width_, least(), scratch_.masks);
    scratch_.chosen.clear();
    for (int64_t group = 0; group * 16 < width_; ++group)
      for (uint32_t left = scratch_.masks[group]; left; left &= left - 1) {
        const int64_t j = group * 16 + __builtin_ctz(left);
        if (most[j] != -kInf && may(j)) scratch_.chosen.push_back(static_cast<int32_t>(j));
      }
    push_chosen();
  }

  void push_chosen() {
    add_block(*level_.table, first_, scratch_, z_);
    for (int32_t j : scratch_.chosen) push(j);
  }

  const Level& level_;
  const Expansion& task_;
  const Bits* allowed_;
  SearchScratch& scratch_;
  BestK& candidates_;
  const bool bounded_;
  const float base_;
  float* z_;
  int64_t chunk_ = 0, first_ = 0, width_ = 0;  // at hand
};

// Bits of one query, or those that all queries share.
struct BlockFilter {
  const TreeBits* shared = nullptr;  // null: no filter
  const std::vector<TreeBits>* own = nullptr;

  explicit operator bool() const { return shared; }
  const TreeBits& of(int64_t q) const { return own ? (*own)[q] : *shared; }
};

BlockFilter filter_block(const SearchModel& model, const TreeFilter* filter, const TreeBits* shared, int64_t begin,
                         int64_t n, SearchScratch& scratch) {
  if (!filter) return {};
  if (!filter->lists.per_row()) return {shared, nullptr};
  if (static_cast<int64_t>(scratch.bits.size()) < n) scratch.bits.resize(n);
  for (int64_t q = 0; q < n; ++q) {
    TreeBits& bits = scratch.bits[q];
    bits.resize(model.layers.size());
    row_bits(filter->lists, begin + q, shared->back(), filter->leaves->positions(), bits.back());
    climb(model.layers, bits);
  }
  return {shared, &scratch.bits};
}

void search_queries(const SearchModel& model, const Queries& queries, int64_t begin, int64_t end,
                    const std::vector<int64_t>& beams, int64_t k, const TreeFilter* filter, const TreeBits* shared,
                    SearchScratch& scratch, int32_t* ids, float* scores) {
  const int64_t n = end - begin;
  const int64_t depth = static_cast<int64_t>(model.layers.size());
  if (static_cast<int64_t>(scratch.candidates.size()) < n) {
    scratch.candidates.resize(n);
    scratch.beam.resize(n);
    scratch.scale.resize(n);
    scratch.blocks.resize(n);
  }
  for (int64_t q = 0; q < n; ++q) scratch.scale[q] = query_scale(queries, begin + q);
  for (int64_t q = 0; q < n && queries.blocks(); ++q)
    scratch.blocks[q].take(queries.matrix.row(begin + q), queries.matrix.n_cols, scratch.scale[q],
                           model.tables[0].stride);
  for (int64_t q = 0; q < n; ++q) scratch.beam[q].assign(1, {0.0f, 0});
  const BlockFilter allowed = filter_block(model, filter, shared, begin, n, scratch);
  for (int64_t t = 0; t < depth; ++t) {
    const ChunkLayerView& layer = model.layers[t];
    const bool last = t + 1 == depth;
    const Level level{layer, queries.blocks() ? &model.tables[t] : nullptr, model.post[t],
                      last ? model.label_of_leaf : nullptr};
    // Under a filter every node has an allowed label below it, so k nodes are as wide as a beam can have to be.
    const int64_t wanted = last ? k : allowed ? std::max(beams[t], std::min(k, layer.n_children)) : beams[t];
    const Transform transform = model.post[t].transform;
    const bool product = last && (transform == Transform::hinge || transform == Transform::sigmoid);
    int64_t widest = 0;
    for (int64_t q = 0; q < n; ++q) {
      scratch.candidates[q].reset(wanted, -kInf, product);
      widest = std::max(widest, static_cast<int64_t>(scratch.beam[q].size()));
    }
    // Ranks 0, 1, 2-3, 4-7, ...: the best parents first, so that the rest can be skipped.
    for (int64_t from = 0, to = 1; from < widest; from = to, to = std::max<int64_t>(2, 2 * to)) {
      scratch.work.clear();
      for (int64_t q = 0; q < n; ++q) {
        BestK& candidates = scratch.candidates[q];
        if (from) candidates.prune();
        const std::vector<Scored>& beam = scratch.beam[q];
        for (int64_t r = from; r < std::min<int64_t>(to, static_cast<int64_t>(beam.size())); ++r)
          scratch.work.push_back({beam[r].id, static_cast<int32_t>(q), beam[r].score});
      }
      if (n > 1)
        std::sort(scratch.work.begin(), scratch.work.end(), [](const Expansion& a, const Expansion& b) {
          return a.parent != b.parent ? a.parent < b.parent : a.query < b.query;
        });
      for (size_t i = 0; i < scratch.work.size(); ++i) {
        const Expansion& task = scratch.work[i];
        Asked asked{queries, begin + task.query, scratch.scale[task.query], nullptr, {}};
        if (i + 1 < scratch.work.size() && !queries.dense) {
          const Expansion& after = scratch.work[i + 1];
          asked.next = layer.parent_chunks + after.parent;
          asked.next_row = query_row(queries, begin + after.query, scratch.scale[after.query]);
          if (*asked.next == layer.parent_chunks[after.parent + 1]) asked.next = nullptr;  // it has no children
        }
        Expanding(level, task, allowed ? &allowed.of(task.query)[t] : nullptr, scratch, scratch.candidates[task.query])
            .run(asked);
      }
    }
    for (int64_t q = 0; q < n; ++q) {
      BestK& candidates = scratch.candidates[q];
      int64_t kept = candidates.finish();
      if (!last) {
        if (allowed) {
          const Bits& leaves = allowed.of(q).back();
          kept = widened(*filter->leaves, leaves, t, candidates.items.data(), kept, beams[t], k);
        }
        scratch.beam[q].assign(candidates.items.begin(), candidates.items.begin() + kept);
        continue;
      }
      write_topk(candidates.items.data(), kept, k, ids + (begin + q) * k, scores + (begin + q) * k);
    }
  }
}

}  // namespace

int64_t search_block(int64_t n, int n_threads) {
  return std::clamp<int64_t>(n / (4 * std::max(n_threads, 1)), kLeastBlock, kLargestBlock);
}

bool beam_search(const SearchModel& model, const Queries& queries, const std::vector<int64_t>& beams, int64_t k,
                 int n_threads, std::vector<ScratchPtr>& scratch, int32_t* ids, float* scores, const Poll& poll,
                 const TreeFilter* filter) {
  while (static_cast<int>(scratch.size()) < std::max(n_threads, 1)) scratch.push_back(make_scratch());
  // Wide beams keep many candidates per query: smaller blocks bound the memory.
  int64_t widest = k;
  for (int64_t beam : beams) widest = std::max(widest, beam);
  const int64_t room = std::clamp<int64_t>((int64_t{1} << 20) / std::max<int64_t>(widest, 1), 1, kLargestBlock);
  int64_t block = std::min(room, search_block(queries.n(), n_threads));
  TreeBits shared;
  if (filter) {
    shared.resize(model.layers.size());
    shared_bits(filter->lists, filter->leaves->positions(), shared.back());
    if (filter->lists.per_row())  // 32 MB of bits per worker
      block = std::clamp<int64_t>((int64_t{1} << 28) / std::max<int64_t>(filter->leaves->n_leaves, 1), 1, block);
    else
      climb(model.layers, shared);
  }
  const bool done = parallel_blocks(
      queries.n(), block, n_threads,
      [&](int64_t begin, int64_t end, int worker) {
        search_queries(model, queries, begin, end, beams, k, filter, &shared, *scratch[worker], ids, scores);
      },
      poll);
  for (ScratchPtr& each : scratch) each->bits = {};  // large, and of no use to the next call
  return done;
}

bool score_layer(const ChunkLayerView& layer, const DenseTable* table, const Queries& queries, int n_threads,
                 float* out, const Poll& poll) {
  auto score = [&](int64_t begin, int64_t end, int) {
    std::vector<double> scale(end - begin);
    SearchScratch scratch;
    scratch.blocks.resize(1);
    for (int64_t q = begin; q < end; ++q) scale[q - begin] = query_scale(queries, q);
    for (int64_t chunk = 0; chunk < layer.n_chunks; ++chunk) {
      const int64_t first = layer.chunk_children[chunk], last = layer.chunk_children[chunk + 1];
      scratch.chosen.resize(last - first);
      std::iota(scratch.chosen.begin(), scratch.chosen.end(), 0);
      for (int64_t q = begin; q < end; ++q) {
        float* z = out + q * layer.n_children + first;
        score_chunk(layer, chunk, {queries, q, scale[q - begin], nullptr, {}}, scratch.lookups, z);
        if (!table) continue;
        scratch.blocks[0].take(queries.matrix.row(q), queries.matrix.n_cols, scale[q - begin], table->stride);
        scratch.block = scratch.blocks[0].view();
        add_block(*table, first, scratch, z);
      }
    }
  };
  return parallel_blocks(queries.n(), search_block(queries.n(), n_threads), n_threads, score, poll);
}

}  // namespace lt
