// Runs every kernel that works through parallel_for on small random data: with 1 and with 4 threads, and from three
// threads at once on the same inputs. All runs of a case must give the same bits; built with -fsanitize=thread (see
// run.sh), none may race. The sum of what a case returns is printed beside it, for comparison with another machine's.
//
//   threads [PART OF A CASE'S NAME]
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <thread>
#include <utility>

#include "driver.h"
#include "kernels/base/parallel.h"
#include "kernels/base/seats.h"
#include "kernels/base/slabs.h"

namespace lt::driver {

namespace {

constexpr int kThreads = 4, kCallers = 3;

void require(bool condition, const char* what) {
  if (!condition) throw std::logic_error(what);
}

// The promises of parallel.h: every task once, scratch never shared, errors and stops after the last worker.
std::vector<Case> the_pool_itself() {
  return {{"parallel_for, every task once",
           [](int n_threads, Digest& digest) {
             std::vector<int64_t> few(2, 0);  // two tasks need two scratch areas, with however many threads
             parallel_for(2, n_threads, [&](int64_t, int worker) { ++few.at(worker); });
             std::vector<int64_t> seen(1000, 0), by_worker(kThreads, 0);
             parallel_for(1000, n_threads, [&](int64_t task, int worker) {
               seen[task] += task + 1;
               ++by_worker[worker];
             });
             require(std::accumulate(by_worker.begin(), by_worker.end(), int64_t{0}) == 1000, "tasks were lost");
             digest.add(seen);
           }},
          {"parallel_for, an error",
           [](int n_threads, Digest& digest) {
             std::string message;
             try {
               parallel_for(200, n_threads, [](int64_t, int) { throw std::runtime_error("refused"); });
             } catch (const std::runtime_error& error) {
               message = error.what();
             }
             digest.add(message.data(), message.size());
           }},
          {"parallel_for, stopped by the caller",
           [](int n_threads, Digest& digest) {
             std::atomic<bool> asked{false};
             const bool finished = parallel_for(
                 1 << 30, n_threads,
                 [&](int64_t, int) {
                   if (!asked) std::this_thread::yield();
                 },
                 [&](int64_t, int64_t) {
                   asked = true;
                   return false;
                 });
             digest.add(&finished, 1);
           }},
          {"Team, loops of different lengths",
           [](int n_threads, Digest& digest) {
             Team team(n_threads);
             std::vector<int64_t> seen(100, 0);
             for (int64_t loop = 0; loop < 300; ++loop)
               team.run(1 + loop * 37 % 100, [&](int64_t task, int) { seen[task] += loop; });
             digest.add(seen);
           }},
          {"Slabs, written here and dropped there",
           [](int n_threads, Digest& digest) {
             constexpr int64_t kPieces = 400;
             std::vector<Slabs> slabs(n_threads);
             std::vector<Slabs::Piece> pieces(kPieces);
             const auto bytes_of = [](int64_t i) { return i % 50 == 0 ? int64_t{100'000} : 1 + i * 37 % 5000; };
             parallel_for(kPieces, n_threads, [&](int64_t i, int worker) {
               pieces[i] = slabs[worker].take(2 * bytes_of(i));
               std::fill_n(pieces[i].get(), bytes_of(i), static_cast<char>(i));
               slabs[worker].keep(bytes_of(i));
             });
             std::vector<int64_t> sums(kPieces, 0);
             parallel_for(kPieces, n_threads, [&](int64_t i, int) {
               const Slabs::Piece piece = std::exchange(pieces[i], Slabs::Piece());
               require(reinterpret_cast<uintptr_t>(piece.get()) % 64 == 0, "a piece is not aligned");
               for (int64_t b = 0; b < bytes_of(i); ++b) sums[i] += piece[b];
             });
             digest.add(sums);
           }},
          {"Team, after an error and a stop",
           [](int n_threads, Digest& digest) {
             Team team(n_threads);
             bool refused = false;
             try {
               team.run(50, [](int64_t, int) { throw std::runtime_error("refused"); });
             } catch (const std::runtime_error&) {
               refused = true;
             }
             const bool finished = team.run(
                 1,
                 [&](int64_t, int) {
                   while (!team.stop().asked()) std::this_thread::yield();
                 },
                 [](int64_t, int64_t) { return false; }, true);
             int64_t count = 0;
             team.run(1, [&](int64_t, int) { ++count; });
             digest.add(&refused, 1);
             digest.add(&finished, 1);
             digest.add(&count, 1);
           }},
          {"Seats, two teams",
           [](int n_threads, Digest& digest) {
             Seats seats(n_threads, 2);
             std::atomic<int> working{0}, most{0};
             std::vector<int64_t> seen(200, 0);
             const auto work = [&](int rank) {
               parallel_for(100, n_threads, [&](int64_t task, int) {
                 const Seat seat(&seats, rank);
                 const int now = ++working;
                 for (int known = most; known < now && !most.compare_exchange_weak(known, now);) continue;
                 seen[rank * 100 + task] += task + 1;
                 --working;
               });
             };
             std::thread beside([&] { work(1); });
             work(0);
             beside.join();
             require(most <= n_threads, "more worked than there are seats");
             digest.add(seen);
           }},
          {"Seats, lower ranks first",
           [](int, Digest& digest) {
             Seats seats(1, 3);
             std::vector<int> served;  // guarded by the seat
             seats.take(1);
             std::vector<std::thread> waiting;
             for (int rank : {2, 0, 1})
               waiting.emplace_back([&, rank] {
                 const Seat seat(&seats, rank);
                 served.push_back(rank);
               });
             while (seats.n_waiting() < 3) std::this_thread::yield();
             seats.give();
             for (std::thread& thread : waiting) thread.join();
             require(served == std::vector<int>{0, 1, 2}, "served in another order");
             digest.add(served);
           }},
          {"parallel_blocks", [](int n_threads, Digest& digest) {
             std::vector<int32_t> seen(1001, 0);
             parallel_blocks(1001, 10, n_threads, [&](int64_t begin, int64_t end, int) {
               for (int64_t i = begin; i < end; ++i) ++seen[i];
             });
             digest.add(seen);
           }}};
}

Digest run(const Case& each, int n_threads) {
  Digest digest;
  each.run(n_threads, digest);
  return digest;
}

uint64_t digest_of(const Case& each, int n_threads) { return run(each, n_threads).value(); }

bool same_from_anywhere(const Case& each, uint64_t expected) {
  bool same = digest_of(each, kThreads) == expected;
  std::vector<uint64_t> found(kCallers);
  std::vector<std::thread> callers;
  for (int caller = 0; caller < kCallers; ++caller)
    callers.emplace_back([&, caller] { found[caller] = digest_of(each, caller == 0 ? 1 : kThreads); });
  for (std::thread& caller : callers) caller.join();
  for (uint64_t digest : found) same = same && digest == expected;
  return same;
}

}  // namespace

}  // namespace lt::driver

int main(int argc, char** argv) {
  using namespace lt::driver;
  const std::string wanted = argc > 1 ? argv[1] : "";
  setenv("LONGTAIL_NUMA", "0;0", 0);   // two nodes, wherever this runs: copies are made, and threads pinned
  setenv("LONGTAIL_PATIENT", "1", 0);  // threads look for the next loop before they sleep, however few processors
  int n_cases = 0, n_failed = 0;
  for (auto* cases : {&the_pool_itself, &linear_cases, &text_cases, &decision_cases, &search_cases, &output_cases})
    for (const Case& each : cases()) {
      if (each.name.find(wanted) == std::string::npos) continue;
      const Digest alone = run(each, 1);
      const bool same = same_from_anywhere(each, alone.value());
      std::printf("%-46s %-14s %.9g\n", each.name.c_str(), same ? "ok" : "DIFFERENT BITS", alone.magnitude());
      ++n_cases;
      n_failed += !same;
    }
  std::printf("%d cases, %d failed\n", n_cases, n_failed);
  return n_failed > 0 || n_cases == 0;
}
