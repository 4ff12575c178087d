#include "lib/local_sgd/decoupled.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <csignal>

#include "tests/dist/ranks.h"
#include "tests/local_sgd/replica_job.h"

namespace {

using namespace scaletrain;
using testing::learn;
using testing::ReplicaJob;
using testing::run_ranks;

TEST_CASE("diloco replicas go on without one that is killed, and have the same bits") {
  const auto results = run_ranks({.world_size = 3}, [&](const core::WorkerEnv& env) {
    ReplicaJob job(env, {.sync = {.name = "diloco", .steps = 4, .fragments = 2}, .total_steps = 20},
                   /*decoupled=*/true);
    for (int step = 0; step < 20; ++step) {
      learn(job.all, env.rank, step);
      if (env.rank == 2 && step == 8) std::raise(SIGKILL);
      job.replicas->after_step(step);
    }
    job.replicas->finish();
    std::string said = job.sum();
    if (env.rank != 0) return said;
    for (const auto& place : job.replicas->membership()) {
      said += fmt::format(", {} {} {}", place.steps, place.has_left, place.is_lost);
    }
    return said;
  });
  CHECK(results[0].text == results[1].text + ", 20 true false, 20 true false, 8 false true");
  CHECK(results[2].status == 128 + SIGKILL);
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

}  // namespace
