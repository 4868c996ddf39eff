#include "kernels/base/parallel.h"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "kernels/base/cpu_quota.h"

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

// Tells the processor that a thread only waits.
inline void idle() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Whether threads that wait do no harm; LONGTAIL_PATIENT=1 or 0 says so instead.
bool many_processors() {
  const char* said = std::getenv("LONGTAIL_PATIENT");
  return said ? *said == '1' : resolve_threads(-1) >= 4;
}

// The C++ library allocates a thread's record of exceptions when it is first used, and aborts the process where there
// is no memory left: every thread asks for it before any of them works. Returns 0.
int prepare_exceptions() { return std::uncaught_exceptions(); }

}  // namespace

int resolve_threads(int n_jobs) {
  if (n_jobs > 0) return n_jobs;
  int cores = std::max(1u, std::thread::hardware_concurrency());
  const int quota = cpu_quota();
  if (quota > 0) cores = std::min(cores, quota);
  return std::max(1, cores + 1 + n_jobs);
}

class Team::Threads {
 public:
  Threads(int n_threads, WorkerStart start)
      : n_threads_(std::clamp(n_threads, 1, kMostThreads)), start_(std::move(start)) {}

  ~Threads() {
    call(kQuit);
    for (auto& thread : threads_) thread.join();
  }

  int size() const { return n_threads_; }
  const StopFlag& stop() const { return stop_; }

  bool run(int64_t n_tasks, const Task& task, const Poll& poll) {
    const int joins = !poll && !start_;  // the calling thread works too
    const int wanted = static_cast<int>(std::min<int64_t>(n_threads_, n_tasks)) - joins;
    grow(wanted);
    const int n_workers = std::min(static_cast<int>(threads_.size()), wanted);
    const bool works = joins || n_workers == 0;
    task_ = &task;
    n_tasks_ = n_tasks;
    next_ = done_ = 0;
    stop_.clear();
    running_ = n_workers + works;
    call((job_ / kWorkers + 1) * kWorkers + n_workers);
    if (works) work(n_workers);
    const bool interrupted = watch(poll);
    stop_.clear();
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
    return !interrupted;
  }

 private:
  // Starts threads until there are `wanted`, or as many as the machine has room for.
  void grow(int wanted) {
    if (static_cast<int>(threads_.size()) >= wanted || refused_) return;
    Reserve reserve;
    prepare_exceptions();
    try {
      threads_.reserve(wanted);
      while (static_cast<int>(threads_.size()) < wanted && reserve.held())
        threads_.emplace_back([this, last = job_.load(), worker = static_cast<int>(threads_.size())] {
          ready_.fetch_add(1 + prepare_exceptions());
          ready_.notify_one();
          live(worker, last);
        });
    } catch (...) {  // the machine refuses another thread: go on with those there are
    }
    const int started = static_cast<int>(threads_.size());
    refused_ = started < wanted;
    for (int n = ready_.load(); n < started; n = ready_.load()) ready_.wait(n);
  }

  void live(int worker, uint64_t last) {
    for (bool begun = false;;) {
      if (!begun || !soon([&] { return job_ != last; })) {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [&] { return job_ != last; });
      }
      last = job_;
      if (last == kQuit) return;
      if (static_cast<uint64_t>(worker) >= last % kWorkers) continue;
      if (!begun && start_) start_(worker);
      begun = true;
      work(worker);
    }
  }

  // Tells the workers of a job, those that sleep too.
  void call(uint64_t job) {
    {
      std::lock_guard lock(mutex_);
      job_ = job;
    }
    wake_.notify_all();
  }

  // Whether something becomes true within less than the time that it takes to be woken. Where processors are few, who
  // looks takes time from those that work: there it is looked at once.
  template <class Condition>
  static bool soon(const Condition& condition) {
    static const bool patient = many_processors();
    if (!patient) return condition();
    const auto end = std::chrono::steady_clock::now() + kPatience;
    do {
      for (int look = 0; look < 32; ++look) {
        if (condition()) return true;
        idle();
      }
    } while (std::chrono::steady_clock::now() < end);
    return false;
  }

  void work(int worker) {
    while (!stop_.asked()) {
      const int64_t i = next_.fetch_add(1, std::memory_order_relaxed);
      if (i >= n_tasks_) break;
      try {
        (*task_)(i, worker);
      } catch (...) {
        std::lock_guard lock(mutex_);
        if (!error_) error_ = std::current_exception();
        stop_.ask();
      }
      done_.fetch_add(1, std::memory_order_relaxed);
    }
    if (--running_ > 0) return;
    std::lock_guard lock(mutex_);  // the caller is asleep, or has not yet looked
    finished_.notify_one();
  }

  // Waits for the workers; returns whether poll asked to stop.
  bool watch(const Poll& poll) {
    bool interrupted = false;
    if (soon([&] { return running_ == 0; })) return false;
    std::unique_lock lock(mutex_);
    while (running_ > 0) {
      finished_.wait_for(lock, std::chrono::milliseconds(100), [&] { return running_ == 0; });
      if (running_ == 0 || !poll || interrupted) continue;
      lock.unlock();
      try {
        interrupted = !poll(done_.load(std::memory_order_relaxed), n_tasks_);
      } catch (...) {
        std::lock_guard guard(mutex_);
        if (!error_) error_ = std::current_exception();
        interrupted = true;
      }
      if (interrupted) stop_.ask();
      lock.lock();
    }
    return interrupted;
  }

  const int n_threads_;
  const WorkerStart start_;
  std::vector<std::thread> threads_;
  std::atomic<int> ready_{0};
  bool refused_ = false;

  static constexpr std::chrono::microseconds kPatience{50};
  static constexpr int kMostThreads = (1 << 16) - 1;
  static constexpr uint64_t kWorkers = kMostThreads + 1, kQuit = UINT64_MAX;

  // The job at hand: its number times kWorkers, and how many workers take part; they alone read the rest.
  std::atomic<uint64_t> job_{0};
  std::atomic<int> running_{0};
  const Task* task_ = nullptr;
  int64_t n_tasks_ = 0;
  std::mutex mutex_;
  std::condition_variable wake_, finished_;
  std::exception_ptr error_;
  std::atomic<int64_t> next_{0}, done_{0};
  StopFlag stop_;
};

Team::Team(int n_threads, WorkerStart start) : threads_(std::make_unique<Threads>(n_threads, std::move(start))) {}

Team::~Team() = default;

const StopFlag& Team::stop() const { return threads_->stop(); }

bool Team::run(int64_t n_tasks, const Task& task, const Poll& poll, bool long_tasks) {
  if (n_tasks <= 0) return true;
  const bool polled = poll != nullptr;
  if (polled ? n_tasks == 1 && !long_tasks : n_tasks == 1 || threads_->size() == 1) {
    for (int64_t i = 0; i < n_tasks; ++i) task(i, 0);
    return true;
  }
  return threads_->run(n_tasks, task, poll);
}

bool Team::run_blocks(int64_t n, int64_t grain, const BlockBody& body, const Poll& poll) {
  grain = std::max<int64_t>(grain, 1);
  return run((n + grain - 1) / grain,
             [&](int64_t block, int worker) { body(block * grain, std::min(n, (block + 1) * grain), worker); }, poll);
}

bool parallel_for(int64_t n_tasks, int n_threads, const Task& task, const Poll& poll) {
  return Team(n_threads).run(n_tasks, task, poll);
}

bool parallel_blocks(int64_t n, int64_t grain, int n_threads, const BlockBody& body, const Poll& poll) {
  return Team(n_threads).run_blocks(n, grain, body, poll);
}

}  // namespace lt
