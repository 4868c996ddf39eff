#include "kernels/base/cpu_quota.h"

#include <algorithm>
#include <climits>
#include <cmath>
#include <cstdio>

#include "kernels/base/small_file.h"

namespace lt {

namespace {

bool lists_cpu(const std::string& controllers) {
  const std::vector<std::string> words = split(controllers, ',');
  return std::find(words.begin(), words.end(), "cpu") != words.end();
}

void take_smaller(int quota, int& smallest) {
  if (quota > 0) smallest = smallest > 0 ? std::min(smallest, quota) : quota;
}

}  // namespace

int processors_of_quota(const std::string& text) {
  double quota = 0, period = 0;
  if (std::sscanf(text.c_str(), "%lf %lf", &quota, &period) != 2 || !(quota > 0) || !(period > 0)) return 0;
  return static_cast<int>(std::clamp(std::ceil(quota / period), 1.0, static_cast<double>(INT_MAX / 2)));
}

int cpu_quota(const std::string& groups, const std::string& root) {
  int smallest = 0;
  for (const std::string& line : lines_of(groups)) {  // "0::/path", or "4:cpu,cpuacct:/path" of version 1
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const bool version_2 = second == first + 1;
    if (!version_2 && !lists_cpu(line.substr(first + 1, second - first - 1))) continue;
    std::string path = line.substr(second + 1);
    for (;;) {  // a container sees its own group as the root, whatever the path says
      if (path == "/") path.clear();
      if (version_2) {
        take_smaller(processors_of_quota(first_line(root + path + "/cpu.max")), smallest);
      } else {
        const std::string folder = root + "/cpu" + path;
        const std::string quota = first_line(folder + "/cpu.cfs_quota_us");
        take_smaller(processors_of_quota(quota + " " + first_line(folder + "/cpu.cfs_period_us")), smallest);
      }
      if (path.empty()) break;
      path.erase(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
    }
  }
  return smallest;
}

}  // namespace lt
