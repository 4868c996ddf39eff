#include "kernels/base/seats.h"

#include <algorithm>

namespace lt {

Seats::Seats(int n_seats, int n_ranks) : n_free_(std::max(n_seats, 1)), queues_(std::max(n_ranks, 1)) {}

int Seats::n_waiting() {
  std::lock_guard lock(mutex_);
  int n = 0;
  for (const Queue& queue : queues_) n += queue.n_waiting;
  return n;
}

void Seats::take(int rank) {
  std::unique_lock lock(mutex_);
  Queue& mine = queues_[rank];
  ++mine.n_waiting;
  mine.called.wait(lock, [&] { return n_free_ > 0 && !waits_before(rank); });
  --mine.n_waiting;
  --n_free_;
  call_next();
}

void Seats::give() {
  std::lock_guard lock(mutex_);
  ++n_free_;
  call_next();
}

bool Seats::waits_before(int rank) const {
  return std::any_of(queues_.begin(), queues_.begin() + rank, [](const Queue& queue) { return queue.n_waiting > 0; });
}

void Seats::call_next() {
  if (n_free_ == 0) return;
  const auto next =
      std::find_if(queues_.begin(), queues_.end(), [](const Queue& queue) { return queue.n_waiting > 0; });
  if (next != queues_.end()) next->called.notify_one();
}

}  // namespace lt
