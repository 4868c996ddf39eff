// How many processors the control group of this process may use at once (Linux containers).
#pragma once

#include <string>

namespace lt {

// Processors that a quota stands for, rounded up; 0 where there is none. `text` is what cpu.max holds, "QUOTA PERIOD"
// in microseconds or "max PERIOD".
int processors_of_quota(const std::string& text);

// The smallest quota on the way from a process's control group to the root; 0 where there is none. `groups`: the file
// that names the groups of the process, `root`: the folder below which they are described.
int cpu_quota(const std::string& groups = "/proc/self/cgroup", const std::string& root = "/sys/fs/cgroup");

}  // namespace lt
