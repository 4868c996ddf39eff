#include "kernels/linear/level_training.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>

#include "kernels/base/aligned_block.h"
#include "kernels/base/counter_random.h"
#include "kernels/base/numa.h"
#include "kernels/linear/node_rows.h"
#include "kernels/linear/pruning.h"

namespace lt {

namespace {

// Memory aligned for vectors that only ever grows.
class Arena {
 public:
  float* floats(int64_t n) { return static_cast<float*>(bytes(n * 4)); }
  // Zeros; whoever writes to them puts zeros back.
  float* zeros(int64_t n) {
    const int64_t before = size_;
    float* memory = floats(n);
    if (size_ != before) std::fill(memory, memory + size_ / 4, 0.0f);
    return memory;
  }
  void* bytes(int64_t n) {
    if (n > size_) {
      memory_.reset();
      size_ = 0;
      memory_ = aligned_block<char>(n + n / 4);
      size_ = block_bytes(n + n / 4);
    }
    return memory_.get();
  }

 private:
  AlignedBlock<char> memory_;
  int64_t size_ = 0;
};

// Surviving weights of one block, by local feature.
struct BlockWeights {
  std::vector<int32_t> feature;
  std::vector<uint8_t> lane;
  std::vector<float> value;
};

// What is kept of a block while it is harvested, in memory that only ever grows.
class Harvest : public KeptWeights {
 public:
  Harvest() {
    grow = [](KeptWeights& kept) { static_cast<Harvest&>(kept).double_room(); };
  }
  void take(BlockWeights& out) {
    out.feature.assign(feature, feature + n);
    out.lane.assign(lane, lane + n);
    out.value.assign(value, value + n);
    n = 0;
  }

 private:
  void double_room() {
    room = 2 * room + 4096;
    features_.resize(room);
    lanes_.resize(room);
    values_.resize(room);
    feature = features_.data();
    lane = lanes_.data();
    value = values_.data();
  }
  RawVector<int32_t> features_;
  RawVector<uint8_t> lanes_;
  RawVector<float> values_;
};

struct Worker {
  Arena weights, solver, sign, cost, diagonal, flipped;
  std::vector<int32_t> slot, positives;  // positives: rows of the node, lane after lane
  GatherScratch gather;
  Harvest harvest;
  Slabs slabs;  // of chunks
};

constexpr int64_t kRowsPerTask = 1024;  // gathered by one thread at a time, where several gather for one parent

// A seed per block, whatever thread solves it.
uint64_t block_seed(uint64_t seed, int64_t child) { return split_mix(seed ^ split_mix(static_cast<uint64_t>(child))); }

// Writes the targets of children [first, first + n_lanes) into the worker's tables.
LaneTargets block_targets(const LevelData& data, const LevelParams& params, int64_t parent, int64_t first, int n_lanes,
                          const NodeRows& node, Worker& worker) {
  const int32_t* rows_begin = data.parent_rows + data.parent_ptr[parent];
  const int32_t* rows_end = data.parent_rows + data.parent_ptr[parent + 1];
  const int64_t n_rows = rows_end - rows_begin;
  worker.slot.assign(n_rows, 0);
  int64_t n_slots = 1;
  auto local_row = [&](int32_t row) {
    const int32_t* at = std::lower_bound(rows_begin, rows_end, row);
    if (at == rows_end || *at != row)
      throw std::invalid_argument("row " + std::to_string(row) + " is positive for a child of node " +
                                  std::to_string(parent) + " but not among the rows of that node");
    return node.local_of[at - rows_begin];
  };
  worker.positives.clear();
  for (int64_t p = data.positive_ptr[first]; p < data.positive_ptr[first + n_lanes]; ++p) {
    worker.positives.push_back(local_row(data.positive_rows[p]));
    int32_t& slot = worker.slot[worker.positives.back()];
    if (slot == 0) slot = static_cast<int32_t>(n_slots++);
  }
  float* sign = worker.sign.floats(n_slots * kBlockLabels);
  float* cost = worker.cost.floats(n_slots * kBlockLabels);
  float* flipped = data.known_positive ? worker.flipped.floats(n_slots * kBlockLabels) : nullptr;
  if (flipped) std::fill(flipped, flipped + n_slots * kBlockLabels, 0.0f);
  std::fill(sign, sign + kBlockLabels, -1.0f);
  std::fill(cost, cost + kBlockLabels, 1.0f);
  std::copy_n(data.negative_cost + first, n_lanes, cost);
  for (int32_t i : worker.positives) {
    const int64_t slot = worker.slot[i];
    const float weight = node.row_weight.empty() ? 1.0f : node.row_weight[i];
    for (int lane = 0; lane < kBlockLabels; ++lane) {
      sign[slot * kBlockLabels + lane] = -1;
      cost[slot * kBlockLabels + lane] = cost[lane] * weight;
    }
  }
  for (int lane = 0; lane < n_lanes; ++lane)
    for (int64_t p = data.positive_ptr[first + lane]; p < data.positive_ptr[first + lane + 1]; ++p) {
      const int64_t slot = worker.slot[worker.positives[p - data.positive_ptr[first]]];
      sign[slot * kBlockLabels + lane] = data.positive_sign ? data.positive_sign[p] : 1.0f;
      cost[slot * kBlockLabels + lane] = data.positive_cost[p];
      if (flipped) flipped[slot * kBlockLabels + lane] = data.known_positive[p] ? 0.0f : 1.0f;
    }
  float* diagonal = nullptr;
  if (params.dual && params.solver.loss == Loss::squared_hinge) {
    diagonal = worker.diagonal.floats(n_slots * kBlockLabels);
    for (int64_t j = 0; j < n_slots * kBlockLabels; ++j) diagonal[j] = std::min(0.5f / cost[j], kLargestDiagonal);
  }
  return {n_lanes,
          worker.slot.data(),
          sign,
          cost,
          node.row_weight.empty() ? nullptr : node.row_weight.data(),
          diagonal,
          data.known_row ? node.known.data() : nullptr,
          flipped};
}

// Adds `factor` times the starting point of the block to its weights. Features that none of the rows has do not matter.
void add_start(const LevelData& data, const LevelParams& params, int64_t first, int n_lanes, const NodeRows& node,
               float factor, float* weights) {
  std::vector<std::pair<int32_t, int32_t>> local(node.original.size());
  for (size_t f = 0; f < local.size(); ++f) local[f] = {node.original[f], static_cast<int32_t>(f)};
  std::sort(local.begin(), local.end());
  for (int lane = 0; lane < n_lanes; ++lane) {
    auto at = local.begin();
    for (int64_t p = data.start->begin(first + lane); p < data.start->end(first + lane); ++p) {
      const int32_t feature = data.start->indices[p];
      at = std::lower_bound(at, local.end(), std::pair<int32_t, int32_t>{feature, 0});
      if (at == local.end()) break;
      if (at->first == feature) weights[at->second * int64_t{kBlockLabels} + lane] += factor * data.start->values[p];
    }
    if (params.solver.bias != 0)
      weights[local.size() * kBlockLabels + lane] += factor * data.start_bias[first + lane] / params.solver.bias;
  }
}

void solve_block(const LevelData& data, const LevelParams& params, int64_t parent, int64_t first, int n_lanes,
                 const NodeRows& node, Worker& worker, BlockWeights& out, float* bias, LaneStatus& status) {
  const bool budgeted = params.prune_budget >= 0;
  const LaneRows rows = node.view();
  const LaneTargets targets = block_targets(data, params, parent, first, n_lanes, node, worker);
  float* weights = worker.weights.zeros((rows.n_features + 1) * kBlockLabels);
  const LaneKernels& kernels = LT_DISPATCH(lane_kernels);
  if (data.start) add_start(data, params, first, n_lanes, node, 1.0f, weights);
  void* scratch = worker.solver.bytes(params.dual ? kernels.dual_scratch(rows) : kernels.newton_scratch(rows));
  if (params.dual) {
    SolverParams solver = params.solver;
    solver.sample_first = rows.n_rows < data.X.n_rows;  // where all rows are seen it costs a little precision
    kernels.solve_dual(rows, targets, solver, block_seed(params.seed, params.first_child + first), weights, scratch,
                       &status);
  } else {
    kernels.solve_newton(rows, targets, params.solver, weights, scratch, &status);
  }

  if (data.start) add_start(data, params, first, n_lanes, node, -1.0f, weights);
  alignas(64) float cutoff[kBlockLabels];
  std::fill(cutoff, cutoff + kBlockLabels, params.threshold);
  const bool singles_apart = rows.shared_ends && !budgeted;  // a budget is shared by all weights of a label
  if (rows.shared_ends && budgeted) kernels.weigh_singles(rows, targets, scratch, weights);
  if (budgeted) cutoffs_by_budget(rows, targets, params.solver, weights, params.prune_budget, cutoff);
  float* bias_weights = weights + rows.n_features * kBlockLabels;
  for (int lane = 0; lane < n_lanes; ++lane)
    bias[first + lane] = std::fabs(bias_weights[lane]) >= cutoff[lane] ? bias_weights[lane] * params.solver.bias : 0;
  std::fill(bias_weights, bias_weights + kBlockLabels, 0.0f);
  kernels.harvest(weights, 0, singles_apart ? rows.n_shared : rows.n_features, n_lanes, cutoff, worker.harvest);
  if (singles_apart) {
    kernels.harvest_singles(rows, targets, scratch, cutoff, worker.harvest);
    kernels.harvest(weights, rows.dense_at(), rows.n_features, n_lanes, cutoff, worker.harvest);
  }
  worker.harvest.take(out);
}

// Merges the blocks of one chunk: features by original id, children ascending within a feature.
void build_chunk(const NodeRows& node, std::vector<BlockWeights>::iterator blocks, int64_t n_blocks, int64_t n_children,
                 int64_t most_entries, Slabs& slabs, Chunk& chunk) {
  int64_t n_entries = 0;
  for (int64_t b = 0; b < n_blocks; ++b) n_entries += static_cast<int64_t>(blocks[b].feature.size());
  check_entries(n_entries, n_children, most_entries);
  std::vector<uint32_t> count(node.original.size(), 0);
  for (int64_t b = 0; b < n_blocks; ++b)
    for (int32_t f : blocks[b].feature) ++count[f];
  const auto n_unused = static_cast<int64_t>(std::count(count.begin(), count.end(), 0u));
  chunk = Chunk(static_cast<int64_t>(count.size()) - n_unused, n_entries, slabs);
  std::vector<uint32_t>& next = count;  // from here on: where the next entry of a feature goes
  uint32_t total = 0;
  int64_t n_written = 0;
  for (int32_t f : node.by_id) {
    if (!count[f]) continue;
    chunk.features[n_written] = node.original[f];
    chunk.entry_ptr[n_written++] = total;
    total += std::exchange(next[f], total);
  }
  chunk.entry_ptr[n_written] = total;
  for (int64_t b = 0; b < n_blocks; ++b) {
    BlockWeights& block = blocks[b];
    for (size_t e = 0; e < block.feature.size(); ++e) {
      const uint32_t at = next[block.feature[e]]++;
      chunk.child[at] = static_cast<uint16_t>(b * kBlockLabels + block.lane[e]);
      chunk.value[at] = block.value[e];
    }
    block = BlockWeights();
  }
}

struct Block {
  int64_t parent, chunk, first;
  int n_lanes;
};

// Lists of row numbers, one after the other.
void check_lists(const int64_t* offsets, int64_t n_lists, const int32_t* rows, int64_t n_rows, const char* what) {
  for (int64_t list = 0; list < n_lists; ++list)
    if (!ascends(rows + offsets[list], offsets[list + 1] - offsets[list], n_rows))
      throw std::invalid_argument(std::string(what) + " " + std::to_string(list) +
                                  " must ascend without repetition from 0 on, below " + std::to_string(n_rows));
}

}  // namespace

void check_level(const LevelData& data, int64_t n_parent_rows, int64_t n_positives) {
  check_offsets(data.parent_ptr, data.n_parents, n_parent_rows, "offsets of parents' rows");
  check_offsets(data.child_ptr, data.n_parents, data.child_ptr[data.n_parents], "offsets of parents' children");
  const int64_t n_children = data.child_ptr[data.n_parents];
  check_offsets(data.positive_ptr, n_children, n_positives, "offsets of children's positives");
  check_lists(data.parent_ptr, data.n_parents, data.parent_rows, data.X.n_rows, "rows of parent");
  check_lists(data.positive_ptr, n_children, data.positive_rows, data.X.n_rows, "positives of child");
}

int64_t worker_bytes(int64_t n_rows, int64_t nnz, int64_t n_cols, int64_t n_dense, bool dual) {
  const LaneKernels& kernels = LT_DISPATCH(lane_kernels);
  LaneRows rows;
  rows.n_rows = n_rows;
  rows.n_features = std::min(nnz, n_cols) + n_dense;
  rows.n_dense = n_dense;
  const int64_t line = kBlockLabels * 4;
  const int64_t solver = dual ? kernels.dual_scratch(rows) : kernels.newton_scratch(rows);
  const int64_t targets = n_rows * (3 * line + 4);           // if every row is positive for some label
  const int64_t gather = n_cols * 8 + rows.n_features * 16;  // the entries themselves belong to the batch
  return solver + targets + gather + (rows.n_features + 1) * line;
}

bool train_level(const LevelData& data, const LevelParams& params, int n_threads, ChunkLayer& layer,
                 LevelReport& report, const Poll& poll) {
  std::vector<int64_t> parent_nnz(data.n_parents, 0);
  int64_t largest = 1;
  for (int64_t parent = 0; parent < data.n_parents; ++parent) {
    for (int64_t r = data.parent_ptr[parent]; r < data.parent_ptr[parent + 1]; ++r)
      parent_nnz[parent] += data.X.row_nnz(data.parent_rows[r]);
    largest = std::max(largest, worker_bytes(data.parent_ptr[parent + 1] - data.parent_ptr[parent], parent_nnz[parent],
                                             data.X.n_cols, data.dense.n_cols, params.dual));
  }
  n_threads = static_cast<int>(std::clamp<int64_t>(params.scratch_bytes / largest, 1, std::max(n_threads, 1)));
  report.threads = n_threads;
  plan_chunks(data.n_parents, data.child_ptr, layer);
  const int64_t n_children = data.child_ptr[data.n_parents];
  const int64_t n_chunks = static_cast<int64_t>(layer.chunk_children.size()) - 1;
  layer.bias.assign(n_children, 0.0f);
  std::vector<Chunk> chunks(n_chunks);
  std::vector<Worker> workers(n_threads);
  std::atomic<int64_t> unconverged{0}, iterations{0}, copies{0};
  int64_t children_done = 0;
  const NumaNodes numa = numa_nodes(n_threads);
  const WorkerStart pin = numa.size() > 1 ? WorkerStart([&](int worker) { numa.pin(worker); }) : WorkerStart();
  const int64_t batch_bytes = params.batch_bytes / numa.size();  // what copies leave
  const DenseCopy dense(data.dense);
  Team team(n_threads, pin);
  LevelParams own = params;
  own.solver.stop = &team.stop();

  for (int64_t batch_begin = 0; batch_begin < data.n_parents;) {
    int64_t batch_end = batch_begin, bytes = 0;
    std::vector<int64_t> place_of(1, 0);  // of the parents' entries in the room
    while (batch_end < data.n_parents) {
      const int64_t n_rows = data.parent_ptr[batch_end + 1] - data.parent_ptr[batch_end];
      const int64_t node_bytes = gathered_bytes(n_rows, parent_nnz[batch_end]);
      if (batch_end > batch_begin && bytes + node_bytes > batch_bytes) break;
      bytes += node_bytes;
      place_of.push_back(place_of.back() + NodeRows::most_entry_bytes(n_rows, parent_nnz[batch_end]));
      ++batch_end;
    }

    // A parent whose rows are more than a batch is alone in it, and is not copied either.
    const bool large = bytes > batch_bytes;
    const bool lent = large && bytes <= params.room_bytes;
    const AlignedBlock<char> made = aligned_block<char>(lent ? 0 : place_of.back());
    char* room = lent ? params.room : made.get();
    Batch batch(numa, batch_end - batch_begin, !large);
    const auto gather = [&](int64_t t, int worker, const RowLoop& loop) {
      NodeRows& node = batch.gathered_by(worker, t);
      gather_rows(data, dense.rows(), batch_begin + t, room + place_of[t], loop, workers[worker].gather, node);
      if (!params.dual)
        sum_rows(node);
      else if (!data.start)  // a start has weights of its own for features of a single row
        split_rows(node);
    };
    const int64_t n_parents = batch_end - batch_begin;
    // Parents that would not feed the threads are gathered one after the other, by all; where memory has a place, by
    // one.
    if (n_parents < n_threads && numa.size() == 1) {
      const RowLoop by_all = [&](int64_t n, const auto& body) {
        team.run_blocks(n, kRowsPerTask, [&](int64_t begin, int64_t end, int) { body(begin, end); });
      };
      for (int64_t t = 0; t < n_parents; ++t) {
        gather(t, 0, by_all);
        if (poll && !poll(children_done, n_children)) return false;
      }
    } else if (!team.run(
                   n_parents,
                   [&](int64_t t, int worker) {
                     const Seat seat(params.seats, params.rank);
                     gather(t, worker, [](int64_t n, const auto& body) { body(0, n); });
                   },
                   poll, true)) {
      return false;
    }

    std::vector<Block> blocks;
    const int64_t first_chunk = layer.parent_chunks[batch_begin], last_chunk = layer.parent_chunks[batch_end];
    std::vector<int64_t> chunk_blocks(1, 0);  // where the blocks of a chunk begin
    for (int64_t parent = batch_begin; parent < batch_end; ++parent)
      for (int64_t c = layer.parent_chunks[parent]; c < layer.parent_chunks[parent + 1]; ++c) {
        for (int64_t first = layer.chunk_children[c]; first < layer.chunk_children[c + 1]; first += kBlockLabels)
          blocks.push_back({parent, c, first,
                            static_cast<int>(std::min<int64_t>(kBlockLabels, layer.chunk_children[c + 1] - first))});
        chunk_blocks.push_back(static_cast<int64_t>(blocks.size()));
      }

    std::vector<BlockWeights> solved(blocks.size());
    std::vector<std::atomic<int64_t>> unsolved(last_chunk - first_chunk);  // blocks of each chunk
    for (size_t c = 0; c < unsolved.size(); ++c) unsolved[c] = chunk_blocks[c + 1] - chunk_blocks[c];
    const Poll level_poll = poll ? Poll([&](int64_t done, int64_t) {
      return poll(std::min(n_children, children_done + done * kBlockLabels), n_children);
    })
                                 : Poll();
    if (!team.run(
            static_cast<int64_t>(blocks.size()),
            [&](int64_t t, int worker) {
              const Seat seat(params.seats, params.rank);
              if (team.stop().asked()) return;  // while it waited
              const Block& block = blocks[t];
              LaneStatus status;
              solve_block(data, own, block.parent, block.first, block.n_lanes,
                          batch.near(worker, block.parent - batch_begin, copies), workers[worker], solved[t],
                          layer.bias.data(), status);
              int64_t missed = 0, passes = 0;
              for (int lane = 0; lane < block.n_lanes; ++lane) {
                missed += !status.converged[lane];
                passes += status.iterations[lane];
              }
              unconverged += missed;
              iterations += passes;
              const int64_t c = block.chunk - first_chunk;
              if (--unsolved[c] == 0)  // whoever solves the last block of a chunk puts it together
                build_chunk(batch.rows(block.parent - batch_begin), solved.begin() + chunk_blocks[c],
                            chunk_blocks[c + 1] - chunk_blocks[c],
                            layer.chunk_children[block.chunk + 1] - layer.chunk_children[block.chunk],
                            params.most_entries, workers[worker].slabs, chunks[block.chunk]);
            },
            level_poll, true))
      return false;
    children_done = data.child_ptr[batch_end];
    batch_begin = batch_end;
  }
  join_chunks(chunks, data.n_features(), team, layer);
  report.unconverged = unconverged;
  report.iterations = iterations;
  report.copies = copies;
  return true;
}

}  // namespace lt
