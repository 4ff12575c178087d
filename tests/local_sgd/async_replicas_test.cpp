#include "lib/local_sgd/async_replicas.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <thread>

#include "lib/core/error.h"
#include "lib/core/log.h"
#include "tests/dist/ranks.h"
#include "tests/local_sgd/gate.h"
#include "tests/local_sgd/replica_job.h"
#include "tests/local_sgd/sync_reference.h"

namespace {

using namespace scaletrain;
using namespace std::chrono_literals;
using testing::kReplicaElements;
using testing::learn;
using testing::ReplicaJob;
using testing::run_ranks;
using testing::SyncReference;

TEST_CASE("async replicas that wait for each other at each exchange have the mean") {
  // The parameters that are exchanged behind each step; of two fragments p0 and p1 are the first.
  using Exchanges = std::map<int, std::vector<std::size_t>>;
  const std::vector<std::size_t> all{0, 1, 2, 3}, first{0, 1}, second{2, 3};
  for (const auto& [fragments, exchanges] : std::vector<std::pair<std::int64_t, Exchanges>>{
           {1, {{4, all}, {8, all}, {10, all}}},
           {2, {{2, first}, {4, second}, {6, first}, {8, second}, {10, all}}}}) {
    CAPTURE(fragments);
    const recipe::Sync sync{.name = "async", .steps = 4, .fragments = fragments, .staleness = 0};
    const auto results = run_ranks({.world_size = 3}, [&](const core::WorkerEnv& env) {
      ReplicaJob job(env, {.sync = sync, .total_steps = 10}, /*decoupled=*/true);
      SyncReference reference(3, sync);
      double largest = 0;
      for (int step = 0; step < 10; ++step) {
        learn(job.all, env.rank, step);
        reference.step(step);
        job.replicas->after_step(step);
        const auto due = exchanges.find(step + 1);
        if (due != exchanges.end()) {
          for (const std::size_t i : due->second) reference.exchange(i);
        }
        largest = std::max(largest, reference.largest_difference(job.all, env.rank));
      }
      if (!(largest < 1e-5)) return fmt::format("{} apart", largest);
      job.replicas->stop();  // nothing more, nor does it ask anybody to stop
      return fmt::format("{} {} {}", job.replicas->weights_differ(), job.replicas->stop_requested(),
                         job.replicas->communicated_bytes());
    });
    for (const auto& result : results) {
      CHECK(result.text == fmt::format("false false {}", 3 * 4 * kReplicaElements));
    }
  }
}

TEST_CASE("when rank 0 stops, async replicas send their progress and are asked to stop") {
  const auto results = run_ranks({.world_size = 3}, [&](const core::WorkerEnv& env) {
    ReplicaJob job(env, {.sync = {.name = "async", .steps = 4, .staleness = 1}},
                   /*decoupled=*/true);
    int step = 0;
    for (; step < 1000 && !job.replicas->stop_requested(); ++step) {
      if (env.rank == 0 && step == 6) break;
      learn(job.all, env.rank, step);
      job.replicas->after_step(step);
    }
    job.replicas->stop();
    if (env.rank != 0) return fmt::format("{}", step < 1000 && step % 4 == 0);
    std::string said;
    for (const auto& place : job.replicas->membership()) {
      said += fmt::format("{} {} ", place.steps > 0, place.has_left);
    }
    return said;
  });
  CHECK(results[0].text == "true true true true true true ");
  CHECK(results[1].text == "true");
  CHECK(results[2].text == "true");
}

TEST_CASE("rank 0 goes on with what others learn after its own end") {
  const auto results = run_ranks({.world_size = 2}, [](const core::WorkerEnv& env) {
    const bool is_first = env.rank == 0;
    ReplicaJob job(env,
                   {.sync = {.name = "async", .steps = 1, .staleness = 1'000'000},
                    .total_steps = is_first ? 1 : 1'000'000},
                   /*decoupled=*/true);
    const at::Tensor weights = job.all[0].tensor.detach();
    const at::Tensor before = weights.clone();
    int step = 0;
    // Rank 1 comes with nothing until it sees what rank 0's only step has made of the weights.
    while (!is_first && at::equal(weights, before)) job.replicas->after_step(step++);
    learn(job.all, env.rank, step);
    job.replicas->after_step(step);
    if (!is_first) job.replicas->stop();
    return job.sum();
  });
  CHECK(results[0].status == 0);
  CHECK(results[0].text == results[1].text);
}

TEST_CASE("another replica than rank 0's ends with what its own last exchange came to") {
  const testing::Gate has_met, has_made;
  const auto results = run_ranks({.world_size = 2}, [&](const core::WorkerEnv& env) {
    ReplicaJob job(env, {.sync = {.name = "async", .steps = 1, .staleness = 1000}},
                   /*decoupled=*/true);
    if (env.rank == 0) has_met.wait();
    learn(job.all, env.rank, 0);
    job.replicas->after_step(0);
    const at::Tensor before = job.all[0].tensor.detach().clone();
    if (env.rank == 1) has_met.open();
    env.rank == 0 ? has_made.open() : has_made.wait();
    job.replicas->stop();
    return fmt::format("{}", at::equal(before, job.all[0].tensor.detach()));
  });
  CHECK(results[1].text == "true");
}

TEST_CASE("a stop waits for others for so long only, and says what that may cost") {
  const testing::Gate is_over;
  const auto results = run_ranks({.world_size = 2}, [&](const core::WorkerEnv& env) {
    ReplicaJob job(env, {.sync = {.name = "async", .steps = 4, .staleness = 1}, .grace_s = 0.2},
                   /*decoupled=*/true);
    std::string said;
    if (env.rank == 1) {
      is_over.wait();
      try {  // to give what comes too late, and is not taken any more
        for (int step = 0; step < 4; ++step) job.replicas->after_step(step);
        said = "taken";
      } catch (const core::StoppedError&) {
      }
      return said;
    }
    core::set_warning_listener([&](const std::string& line) { said += line; });
    learn(job.all, env.rank, 0);
    job.replicas->after_step(0);
    job.replicas->stop();
    is_over.open();
    std::this_thread::sleep_for(200ms);  // in which it would be
    return said;
  });
  CHECK(results[1].text.empty());
  CHECK(results[0].text ==
        "warning: some replicas did not respond within 0.06 s: their progress since the last "
        "synchronization is lost");
}

TEST_CASE(
    "a replica that leaves as training is over still counts, one that stops before does not") {
  for (const bool is_over : {false, true}) {
    CAPTURE(is_over);
    const auto results = run_ranks({.world_size = 2}, [&](const core::WorkerEnv& env) {
      ReplicaJob job(env,
                     {.sync = {.name = "async", .steps = 1, .staleness = 1000},
                      .total_steps = env.rank == 1 && is_over ? 1 : 1000},
                     /*decoupled=*/true);
      const double begin = job.weight();
      if (env.rank == 1) {
        is_over ? job.replicas->after_step(0) : job.replicas->stop();
        return std::string();
      }
      while (!job.replicas->membership()[1].has_left) usleep(1000);
      std::string said;
      for (int step = 0; step < 2; ++step) {
        job.fill(job.weight() + 2);
        job.replicas->after_step(step);
        said += fmt::format("{:.3f} ", job.weight() - begin);
      }
      return said;
    });
    // 2 / 2, then 2 / 2 or 2 more.
    CHECK(results[0].text == (is_over ? "1.000 2.000 " : "1.000 3.000 "));
  }
}

TEST_CASE("the ranks of an async replica average the weights of their own place") {
  const auto results = run_ranks({.world_size = 4}, [](const core::WorkerEnv& env) {
    ReplicaJob job(env, {.sync = {.name = "async", .steps = 1, .staleness = 0}, .total_steps = 1},
                   /*decoupled=*/true, 0, {.pipe = 1, .replica = {}, .shard = 2});
    const double begin = job.weight();
    job.fill(begin + 10 * (env.rank % 2) + 2 * job.mesh.replica());
    job.replicas->after_step(0);
    job.mesh.world().barrier("the hub may end");
    return fmt::format("{:.3f} of {} bytes", job.weight() - begin,
                       job.replicas->communicated_bytes());
  });
  // (0 + 2) / 2 and (10 + 12) / 2.
  for (std::size_t rank = 0; rank < 4; ++rank) {
    CHECK(results[rank].text ==
          fmt::format("{} of {} bytes", rank % 2 == 0 ? "1.000" : "11.000", 4 * kReplicaElements));
  }
}

}  // namespace
