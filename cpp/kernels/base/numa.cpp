#include "kernels/base/numa.h"

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

#include "kernels/base/small_file.h"

#ifdef __linux__
#include <sched.h>
#endif

namespace lt {

namespace {

constexpr int kMostCpus = 1 << 16;

[[noreturn]] void refuse(const std::string& text) {
  throw std::invalid_argument("'" + text + "' is no list of CPUs: write 0-3,8 (and LONGTAIL_NUMA as 0-3;4-7, or off)");
}

int parse_cpu(const std::string& digits, const std::string& text) {
  if (digits.empty() || digits.size() > 5 || digits.find_first_not_of("0123456789") != std::string::npos) refuse(text);
  const int cpu = std::stoi(digits);
  if (cpu >= kMostCpus) refuse(text);
  return cpu;
}

#ifdef __linux__

// A mask as large as the machine needs.
class CpuMask {
 public:
  CpuMask() : words_(kMostCpus / (8 * sizeof(unsigned long)), 0) {}
  cpu_set_t* data() { return reinterpret_cast<cpu_set_t*>(words_.data()); }
  size_t bytes() const { return words_.size() * sizeof(unsigned long); }
  bool has(int cpu) { return CPU_ISSET_S(cpu, bytes(), data()); }
  void add(int cpu) { CPU_SET_S(cpu, bytes(), data()); }

 private:
  std::vector<unsigned long> words_;
};

std::vector<std::vector<int>> system_nodes() {
  std::vector<std::vector<int>> out;
  try {
    const std::string folder = "/sys/devices/system/node/";
    for (int node : parse_cpu_list(first_line(folder + "online"))) {
      const std::string cpus = first_line(folder + "node" + std::to_string(node) + "/cpulist");
      if (!cpus.empty()) out.push_back(parse_cpu_list(cpus));  // a node may be memory alone
    }
  } catch (const std::invalid_argument&) {  // not there, or not as we know it
    return {};
  }
  return out;
}

#endif

std::vector<std::vector<int>> given_nodes(const std::string& text) {
  std::vector<std::vector<int>> out;
  for (const std::string& list : split(text, ';')) out.push_back(parse_cpu_list(list));
  return out;
}

}  // namespace

std::vector<int> parse_cpu_list(const std::string& text) {
  std::vector<int> out;
  for (const std::string& range : split(text, ',')) {
    const size_t dash = range.find('-');
    const int first = parse_cpu(range.substr(0, dash), text);
    const int last = dash == std::string::npos ? first : parse_cpu(range.substr(dash + 1), text);
    if (last < first) refuse(text);
    for (int cpu = first; cpu <= last; ++cpu) out.push_back(cpu);
  }
  if (out.empty()) refuse(text);
  return out;
}

NumaNodes numa_nodes(int n_threads) {
  const char* given = std::getenv("LONGTAIL_NUMA");
  const std::string wish = given ? given : "";
  if (wish == "off") return NumaNodes();
  std::vector<std::vector<int>> nodes;
  if (!wish.empty()) nodes = given_nodes(wish);
#ifdef __linux__
  if (wish.empty()) nodes = system_nodes();
  if (nodes.size() < 2) return NumaNodes();
  CpuMask allowed;
  if (sched_getaffinity(0, allowed.bytes(), allowed.data()) != 0) return NumaNodes();
  for (std::vector<int>& cpus : nodes) std::erase_if(cpus, [&](int cpu) { return !allowed.has(cpu); });
  std::erase_if(nodes, [](const std::vector<int>& cpus) { return cpus.empty(); });
#endif
  if (static_cast<int>(nodes.size()) < 2 || n_threads < static_cast<int>(nodes.size())) return NumaNodes();
  return NumaNodes(std::move(nodes));
}

void NumaNodes::pin([[maybe_unused]] int worker) const noexcept {
#ifdef __linux__
  if (size() < 2) return;
  try {
    CpuMask mask;
    for (int cpu : cpus_[of_worker(worker)]) mask.add(cpu);
    sched_setaffinity(0, mask.bytes(), mask.data());  // of this thread; refused in some sandboxes
  } catch (const std::bad_alloc&) {
  }
#endif
}

}  // namespace lt
