// Threads for the length of a call.
//
// Work is cut into tasks 0 .. n_tasks - 1 before any thread starts; threads take the next task from a counter, so the
// cut, and with it every result, is the same for any number of threads. What a task computes may depend on its index,
// never on the worker that runs it; `worker` only names a scratch area.
//
// The calling thread does not work: it waits, and calls `poll` about ten times a second, so that the caller can notice
// Ctrl-C and draw progress without any worker touching Python. Short jobs (one task, or one thread with no poll) run on
// the calling thread itself: starting a thread costs more than they do.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

namespace lt {

// What the caller wants to know while a kernel runs. Returns false to stop: tasks under way finish, no more start, and
// parallel_for returns false.
using Poll = std::function<bool(int64_t done, int64_t total)>;

// Called by every thread that is started, before its first task; not by a calling thread that works itself.
using WorkerStart = std::function<void(int worker)>;

// Resolves n_jobs as scikit-learn does: positive is a count, -1 all cores, -2 all but one; 0 is refused by the caller.
int resolve_threads(int n_jobs);

// Runs task(index, worker) for every index. The first exception a task throws is thrown again here after all workers
// have stopped. Returns false if poll asked to stop.
bool parallel_for(int64_t n_tasks, int n_threads, const std::function<void(int64_t task, int worker)>& task,
                  const Poll& poll = {}, const WorkerStart& start = {});

// Cuts n items into blocks of at most `grain` and runs body(begin, end, worker) for each block.
bool parallel_blocks(int64_t n, int64_t grain, int n_threads,
                     const std::function<void(int64_t begin, int64_t end, int worker)>& body, const Poll& poll = {});

}  // namespace lt
