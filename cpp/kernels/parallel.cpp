#include "kernels/parallel.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace lt {

int resolve_threads(int n_jobs) {
  if (n_jobs > 0) return n_jobs;
  const int cores = std::max(1u, std::thread::hardware_concurrency());
  return std::max(1, cores + 1 + n_jobs);
}

bool parallel_for(int64_t n_tasks, int n_threads, const std::function<void(int64_t, int)>& task, const Poll& poll,
                  const WorkerStart& start) {
  if (n_tasks <= 0) return true;
  if (n_tasks == 1 || (n_threads <= 1 && !poll)) {
    for (int64_t i = 0; i < n_tasks; ++i) task(i, 0);
    return true;
  }
  const int n_workers = static_cast<int>(std::min<int64_t>(std::max(n_threads, 1), n_tasks));

  std::atomic<int64_t> next{0}, done{0};
  std::atomic<bool> stop{false};
  std::mutex mutex;
  std::condition_variable finished;
  int running = 0;
  std::exception_ptr error;

  auto work = [&](int worker) {
    while (!stop.load(std::memory_order_relaxed)) {
      const int64_t i = next.fetch_add(1, std::memory_order_relaxed);
      if (i >= n_tasks) break;
      try {
        task(i, worker);
      } catch (...) {
        std::lock_guard lock(mutex);
        if (!error) error = std::current_exception();
        stop = true;
      }
      done.fetch_add(1, std::memory_order_relaxed);
    }
    std::lock_guard lock(mutex);
    if (--running == 0) finished.notify_one();
  };

  std::vector<std::thread> threads;
  threads.reserve(n_workers);
  for (int worker = 0; worker < n_workers; ++worker) {
    {
      std::lock_guard lock(mutex);
      ++running;
    }
    try {
      threads.emplace_back([&, worker] {
        if (start) start(worker);
        work(worker);
      });
    } catch (const std::system_error&) {  // the machine refuses another thread: go on with those there are
      std::lock_guard lock(mutex);
      --running;
      break;
    }
  }
  if (threads.empty()) {
    ++running;
    work(0);
  }

  bool interrupted = false;
  std::unique_lock lock(mutex);
  while (running > 0) {
    finished.wait_for(lock, std::chrono::milliseconds(100), [&] { return running == 0; });
    if (running > 0 && poll && !interrupted) {
      lock.unlock();
      bool go_on = false;
      try {
        go_on = poll(done.load(std::memory_order_relaxed), n_tasks);
      } catch (...) {
        std::lock_guard guard(mutex);
        if (!error) error = std::current_exception();
      }
      if (!go_on) {
        interrupted = true;
        stop = true;
      }
      lock.lock();
    }
  }
  lock.unlock();
  for (auto& thread : threads) thread.join();
  if (error) std::rethrow_exception(error);
  return !interrupted;
}

bool parallel_blocks(int64_t n, int64_t grain, int n_threads, const std::function<void(int64_t, int64_t, int)>& body,
                     const Poll& poll) {
  grain = std::max<int64_t>(grain, 1);
  const int64_t n_blocks = (n + grain - 1) / grain;
  return parallel_for(
      n_blocks, n_threads,
      [&](int64_t block, int worker) { body(block * grain, std::min(n, (block + 1) * grain), worker); }, poll);
}

}  // namespace lt
