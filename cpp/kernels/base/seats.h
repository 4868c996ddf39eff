// Seats for the workers of several teams that run side by side: only as many work at a time as there are seats, and
// teams of lower rank come first. Without them every team has as many threads as there are processors, and the one
// whose tasks are few and long gets the smallest share.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>

namespace lt {

class Seats {
 public:
  Seats(int n_seats, int n_ranks);
  int n_ranks() const { return static_cast<int>(queues_.size()); }
  int n_waiting();

  // Waits until a seat is free that nobody of lower rank waits for.
  void take(int rank);
  void give();

 private:
  struct Queue {
    std::condition_variable called;
    int n_waiting = 0;
  };
  bool waits_before(int rank) const;
  void call_next();

  std::mutex mutex_;
  int n_free_;
  std::deque<Queue> queues_;  // (ranks)
};

// A seat for the length of a task; none is needed where there are no seats.
class Seat {
 public:
  Seat(Seats* seats, int rank) : seats_(seats) {
    if (seats_) seats_->take(rank);
  }
  ~Seat() {
    if (seats_) seats_->give();
  }
  Seat(const Seat&) = delete;
  Seat& operator=(const Seat&) = delete;

 private:
  Seats* seats_;
};

}  // namespace lt
