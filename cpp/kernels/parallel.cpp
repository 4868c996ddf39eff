#include "kernels/parallel.h"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace lt {

namespace {

// Address space that is kept while threads start, and given back before they work: where memory is short, as many
// start as leave room for their tasks.
class Reserve {
 public:
  Reserve() : start_(mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {}
  ~Reserve() { release(); }
  Reserve(const Reserve&) = delete;
  Reserve& operator=(const Reserve&) = delete;
  bool held() const { return start_ != MAP_FAILED; }
  void release() {
    if (held()) munmap(start_, kBytes);
    start_ = MAP_FAILED;
  }

 private:
  static constexpr size_t kBytes = size_t{32} << 20;
  void* start_;
};

// The C++ library allocates a thread's record of exceptions when it is first used, and aborts the process where there
// is no memory left: every thread asks for it before any of them works. Returns 0.
int prepare_exceptions() { return std::uncaught_exceptions(); }

}  // namespace

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

  Reserve reserve;
  std::vector<std::thread> threads;
  std::atomic<int> ready{prepare_exceptions()};
  std::atomic<bool> open{false};
  try {
    threads.reserve(n_workers);
    for (int worker = 0; worker < n_workers && reserve.held(); ++worker) {
      threads.emplace_back([&, worker] {
        ready.fetch_add(1 + prepare_exceptions());
        ready.notify_one();
        open.wait(false);
        if (start) start(worker);
        work(worker);
      });
    }
  } catch (...) {  // the machine refuses another thread: go on with those there are
  }
  const int started = static_cast<int>(threads.size());
  running = std::max(started, 1);
  for (int n = ready.load(); n < started; n = ready.load()) ready.wait(n);
  reserve.release();
  open = true;
  open.notify_all();
  if (threads.empty()) work(0);

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
