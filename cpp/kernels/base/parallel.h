// Threads for the length of a call.
//
// Work is cut into tasks 0 .. n_tasks - 1 before any thread starts; threads take the next task from a counter, so the
// cut, and with it every result, is the same for any number of threads. What a task computes may depend on its index,
// never on the worker that runs it; `worker` only names a scratch area.
//
// A calling thread with a `poll` does not work: it waits, and calls that about ten times a second, so that the caller
// can notice Ctrl-C and draw progress without any worker touching Python. Without one it is the last of the workers.
// Short jobs (one task, or one thread with no poll) run on the calling thread alone: waking a thread costs more than
// they do.
//
// A kernel with one loop calls parallel_for. One with many makes a Team and runs them on it: its threads are started
// when a loop first needs them, sleep between loops (where there are processors enough, after a look for the next one
// that lasts some microseconds; the environment variable LONGTAIL_PATIENT=1 or 0 says so instead), and end with the
// team.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "kernels/base/stop_flag.h"

namespace lt {

// What the caller wants to know while a kernel runs. Returns false to stop: tasks under way finish, no more start, and
// parallel_for returns false.
using Poll = std::function<bool(int64_t done, int64_t total)>;

// Called by every thread that is started, before its first task; not by a calling thread that works itself.
using WorkerStart = std::function<void(int worker)>;

using Task = std::function<void(int64_t task, int worker)>;
using BlockBody = std::function<void(int64_t begin, int64_t end, int worker)>;

// Resolves n_jobs as scikit-learn does: positive is a count, -1 all cores, -2 all but one; 0 is refused by the caller.
// Cores are those that this process may use: by its affinity, and by the quota of its control group where it has one.
int resolve_threads(int n_jobs);

class Team {
 public:
  explicit Team(int n_threads, WorkerStart start = {});
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  // Runs task(index, worker) for every index. The first exception a task throws is thrown again here after all workers
  // have stopped. Returns false if poll asked to stop. `long_tasks`: even a single task leaves the calling thread free
  // to poll.
  bool run(int64_t n_tasks, const Task& task, const Poll& poll = {}, bool long_tasks = false);

  // Cuts n items into blocks of at most `grain` and runs body(begin, end, worker) for each block.
  bool run_blocks(int64_t n, int64_t grain, const BlockBody& body, const Poll& poll = {});

  // Set while workers are to stop: after an error, or when poll said so. Long tasks look at it now and then, and
  // return.
  const StopFlag& stop() const;

 private:
  class Threads;
  std::unique_ptr<Threads> threads_;
};

// The same with a team of its own.
bool parallel_for(int64_t n_tasks, int n_threads, const Task& task, const Poll& poll = {});
bool parallel_blocks(int64_t n, int64_t grain, int n_threads, const BlockBody& body, const Poll& poll = {});

}  // namespace lt
