#include "lib/data/loader/thread_search.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace scaletrain::data {
namespace {

// A loader beside a training process.
struct Machine {
  std::string name;
  double cores = 1;        // shared by loader threads and, on a CPU, training
  double cpu_s = 0;        // a loader thread's CPU time for a sample
  double latency_s = 0;    // its waiting for the store
  double train_s = 0;      // training's time for a sample with all cores it can use
  double train_cores = 0;  // cores that training uses at most; 0: it runs on a device

  double loader_rate(int threads) const {
    const double on_cores = cpu_s > 0 ? cores / cpu_s : 1e9;
    return std::min(threads / (cpu_s + latency_s), on_cores);
  }
  // Samples a second of both. On a CPU, threads of the loader that are busy take training's cores.
  double rate(int threads) const {
    if (train_cores == 0) return std::min(1 / train_s, loader_rate(threads));
    double low = 0, high = 1 / train_s;
    for (int i = 0; i < 50; ++i) {
      const double rate = (low + high) / 2;
      const double busy = rate * cpu_s + 0.05 * threads;  // a thread costs some switching
      const double left = std::clamp(cores - busy, 0.05, train_cores);
      const bool can = rate <= loader_rate(threads) && rate <= left / train_cores / train_s;
      (can ? low : high) = rate;
    }
    return low;
  }
  double waited(int threads) const { return 1 - std::min(1.0, rate(threads) * train_s); }
};

const std::vector<Machine> kMachines{
    {.name = "small pictures, device", .cores = 16, .cpu_s = 0.002, .train_s = 0.001},
    {.name = "large pictures, device", .cores = 16, .cpu_s = 0.01, .train_s = 0.001},
    {.name = "large pictures, many cores", .cores = 64, .cpu_s = 0.03, .train_s = 0.001},
    {.name = "raw pixels, device", .cores = 8, .cpu_s = 0.0002, .train_s = 0.002},
    {.name = "store of 50 ms", .cores = 8, .cpu_s = 0.002, .latency_s = 0.05, .train_s = 0.002},
    {.name = "store of 200 ms", .cores = 16, .cpu_s = 0.002, .latency_s = 0.2, .train_s = 0.005},
    {.name = "one core, device", .cores = 1, .cpu_s = 0.004, .train_s = 0.001},
    {.name = "slow training", .cores = 16, .cpu_s = 0.004, .train_s = 0.1},
    {.name = "CPU, small model", .cores = 2, .cpu_s = 0.001, .train_s = 0.001, .train_cores = 2},
    {.name = "CPU, large model", .cores = 2, .cpu_s = 0.001, .train_s = 0.05, .train_cores = 2},
    {.name = "CPU, costly pictures", .cores = 4, .cpu_s = 0.02, .train_s = 0.01, .train_cores = 4},
    {.name = "CPU, store",
     .cores = 4,
     .cpu_s = 0.001,
     .latency_s = 0.02,
     .train_s = 0.005,
     .train_cores = 4},
};

// Runs a search on a machine until it ends; returns the number of windows.
int settle(ThreadSearch& search, const Machine& machine) {
  int windows = 0;
  while (!search.is_settled() && windows < 40) {
    search.add(machine.rate(search.size().threads), machine.waited(search.size().threads));
    ++windows;
  }
  return windows;
}

}  // namespace

TEST_CASE("a search finds 95 % of the best rate in at most 30 windows") {
  for (const Machine& machine : kMachines) {
    CAPTURE(machine.name);
    ThreadSearch search(
        {.threads = std::clamp(static_cast<int>(machine.cores), 1, 16), .prefetch = 4});
    CHECK(settle(search, machine) <= 30);
    double best = 0;
    for (int threads = 1; threads <= search.most().threads; ++threads) {
      best = std::max(best, machine.rate(threads));
    }
    CAPTURE(search.size().threads);
    CHECK(machine.rate(search.size().threads) >= 0.95 * best);
  }
}

TEST_CASE("threads that gain nothing are given back") {
  ThreadSearch search({.threads = 16, .prefetch = 4});
  settle(search, {.name = "", .cores = 16, .cpu_s = 0.004, .train_s = 0.1});
  CHECK(search.size() == ReadAheadSize{.threads = 1, .prefetch = 4});
}

TEST_CASE("read-ahead grows where threads do not help, and stays if it gains") {
  ThreadSearch search({.threads = 1, .prefetch = 2});
  std::vector<int> tried;
  while (!search.is_settled()) {
    tried.push_back(search.size().prefetch);
    search.add(search.size().prefetch >= 4 ? 110 : 100, 0.5);
  }
  CHECK(tried == std::vector{2, 2, 4, 8});  // baseline, two threads, then read-ahead
  CHECK(search.size() == ReadAheadSize{.threads = 1, .prefetch = 4});
}

TEST_CASE("a settled search starts again when training waits clearly more") {
  ThreadSearch search({.threads = 2, .prefetch = 4});
  settle(search, {.name = "", .cores = 8, .cpu_s = 0.001, .train_s = 0.001});
  REQUIRE(search.is_settled());
  CHECK_FALSE(search.add(500, 0.05));
  CHECK(search.is_settled());
  CHECK(search.add(300, 0.6));
  CHECK_FALSE(search.is_settled());
}

}  // namespace scaletrain::data
