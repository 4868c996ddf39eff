// Which memory is near: the NUMA nodes of the machine, as far as this process may use them.
//
// A core reads memory of its own node faster than that of another. Training pins its threads to nodes in turn and gives
// each node a copy of the rows (level_training.h). On a machine with one node, and where the system does not tell (it
// is asked on Linux only), there is one node here and nothing is pinned.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace lt {

class NumaNodes {
 public:
  // One list of CPUs per node; fewer than two lists are the same as one node.
  explicit NumaNodes(std::vector<std::vector<int>> cpus = {}) : cpus_(std::move(cpus)) {}

  int size() const { return cpus_.size() > 1 ? static_cast<int>(cpus_.size()) : 1; }
  int of_worker(int worker) const { return worker % size(); }
  const std::vector<std::vector<int>>& cpus() const { return cpus_; }

  // Keeps the calling thread on the CPUs of its node. Where the system refuses, the thread runs
  // anywhere, and all that is lost is speed.
  void pin(int worker) const noexcept;

 private:
  std::vector<std::vector<int>> cpus_;
};

// The nodes that have a CPU this thread may run on, with those CPUs. One node if there are fewer threads than nodes:
// they had better go where the system sends them.
//
// The environment variable LONGTAIL_NUMA overrides what the system says: lists of CPUs, one per node, as in
// "0-3,8;4-7", or "off". Throws std::invalid_argument if it is neither.
NumaNodes numa_nodes(int n_threads);

// "0-3,8" to {0, 1, 2, 3, 8}. Throws std::invalid_argument.
std::vector<int> parse_cpu_list(const std::string& text);

}  // namespace lt
