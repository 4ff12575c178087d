#include "lib/local_sgd/async_replicas.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
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
  const recipe::Sync sync{.name = "async", .steps = 4, .staleness = 0};
  const auto results = run_ranks({.world_size = 3}, [&](const core::WorkerEnv& env) {
    ReplicaJob job(env, {.sync = sync, .total_steps = 10}, /*decoupled=*/true);
    SyncReference reference(3, sync);
    double largest = 0;
    for (int step = 0; step < 10; ++step) {
      learn(job.all, env.rank, step);
      reference.step(step);
      job.replicas->after_step(step);
      const bool meets = step == 3 || step == 7 || step == 9;
      for (std::size_t i = 0; meets && i < job.all.size(); ++i) reference.exchange(i);
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

TEST_CASE("async replicas go on without one that is killed") {
  const auto results = run_ranks({.world_size = 3}, [&](const core::WorkerEnv& env) {
    ReplicaJob job(env, {.sync = {.name = "async", .steps = 2, .staleness = 1}, .total_steps = 20},
                   /*decoupled=*/true);
    for (int step = 0; step < 20; ++step) {
      learn(job.all, env.rank, step);
      if (env.rank == 2 && step == 5) std::raise(SIGKILL);
      job.replicas->after_step(step);
    }
    std::string said = "trained";
    if (env.rank != 0) return said;
    for (const auto& place : job.replicas->membership()) {
      said += fmt::format(", {} {} {}", place.steps, place.has_left, place.is_lost);
    }
    return said;
  });
  CHECK(results[0].text == "trained, 20 true false, 20 true false, 4 false true");
  CHECK(results[1].text == "trained");
  CHECK(results[2].status == 128 + SIGKILL);
}

TEST_CASE("where rank 0 stops, async replicas give what they have and hear that they shall stop") {
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
        "warning: some replicas were not heard of within 0.06 s: what they learned last is not "
        "there");
}

}  // namespace
