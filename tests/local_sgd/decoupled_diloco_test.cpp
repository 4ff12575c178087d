#include "lib/local_sgd/decoupled_diloco.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <array>

#include "tests/dist/ranks.h"
#include "tests/local_sgd/replica_job.h"

namespace {

using namespace scaletrain;
using namespace std::chrono_literals;
using testing::kReplicaElements;
using testing::learn;
using testing::ReplicaJob;
using testing::run_ranks;

TEST_CASE("in rounds diloco replicas come to the bits of collectives") {
  for (const auto& [fragments, rounded_to] :
       std::vector<std::pair<std::int64_t, std::optional<at::ScalarType>>>{
           {1, {}}, {2, {}}, {2, at::kBFloat16}, {1, at::kHalf}}) {
    CAPTURE(fragments);
    CAPTURE(rounded_to.has_value());
    const recipe::Sync sync{.name = "diloco", .steps = 4, .fragments = fragments};
    const auto weights_of = [&](bool apart) {
      return run_ranks({.world_size = 3}, [&](const core::WorkerEnv& env) {
        ReplicaJob job(env, {.sync = sync, .total_steps = 10, .rounded_to = rounded_to}, apart);
        for (int step = 0; step < 10; ++step) {
          learn(job.all, env.rank, step);
          job.replicas->after_step(step);
        }
        job.replicas->finish();
        std::string said = fmt::format("{}", job.replicas->communicated_bytes());
        for (const auto& parameter : job.all) {
          const at::Tensor flat = parameter.tensor.detach().reshape({-1});
          for (std::int64_t i = 0; i < flat.numel(); ++i) {
            said += fmt::format(" {:a}", flat[i].item<float>());
          }
        }
        return said;
      });
    };
    const auto together = weights_of(false), apart = weights_of(true);
    for (std::size_t rank = 0; rank < 3; ++rank) {
      CHECK(together[rank].status == 0);
      CHECK(apart[rank].text == together[0].text);
    }
  }
}

TEST_CASE("diloco replicas stop at the step of the furthest, or earlier if time is short") {
  // Rank 2 is at step 6 and rank 0 at step 5; rank 1 is at 3 and has time for no further step, or
  // trains on to step 6.
  for (const bool has_time : {false, true}) {
    CAPTURE(has_time);
    const auto results = run_ranks({.world_size = 3}, [&](const core::WorkerEnv& env) {
      ReplicaJob job(env,
                     {.sync = {.name = "diloco", .steps = 100, .fragments = 2},
                      .grace_s = env.rank != 1 || has_time ? 60.0 : 0.0},
                     /*decoupled=*/true);
      int step = 0;
      const auto train = [&] {
        learn(job.all, env.rank, step);
        job.replicas->after_step(step++);
      };
      while (step < std::array{5, 3, 6}.at(static_cast<std::size_t>(env.rank))) train();
      core::StopReason stop = core::StopReason::kTerminate;
      while (job.replicas->before_step(stop)) train();
      job.replicas->stop();
      std::string said = fmt::format("{} {} {} {}", job.replicas->weights_differ(),
                                     job.replicas->is_synchronized(),
                                     job.replicas->communicated_bytes(), job.sum());
      for (const auto& replica : job.replicas->membership()) {
        said += fmt::format(", {}", replica.steps);
      }
      return said;
    });
    CHECK(results[1].text.starts_with(fmt::format("false false {} ", 4 * kReplicaElements)));
    CHECK(results[2].text == results[1].text);
    CHECK(results[0].text == results[1].text + (has_time ? ", 6, 6, 6" : ", 6, 3, 6"));
  }
}

TEST_CASE("a synchronization that a stop gives up is made once, where all have come to it") {
  const auto results = run_ranks({.world_size = 2}, [&](const core::WorkerEnv& env) {
    // The first fragment is due after step 2, where rank 0 waits; rank 1 stops before.
    ReplicaJob job(env, {.sync = {.name = "diloco", .steps = 4, .fragments = 2}},
                   /*decoupled=*/true);
    int step = 0;
    const auto train = [&] {
      learn(job.all, env.rank, step);
      job.replicas->after_step(step++);
    };
    train();
    if (env.rank == 0) train();
    core::StopReason stop = env.rank == 1 ? core::StopReason::kInterrupt : core::StopReason::kNone;
    while (job.replicas->before_step(stop)) train();
    std::string said = fmt::format("{} {}, ", step, job.replicas->communicated_bytes());
    job.replicas->stop();
    return said + fmt::format("{} {}", job.replicas->communicated_bytes(), job.sum());
  });
  CHECK(results[0].text.starts_with(fmt::format("2 0, {} ", 4 * kReplicaElements)));
  CHECK(results[1].text == results[0].text);
}

TEST_CASE("diloco replicas that stop where they resumed synchronize nothing") {
  const auto results = run_ranks({.world_size = 2}, [](const core::WorkerEnv& env) {
    ReplicaJob job(env, {.sync = {.name = "diloco", .steps = 4}}, /*decoupled=*/true, 6);
    core::StopReason stop = core::StopReason::kTerminate;
    const bool trains_on = job.replicas->before_step(stop);
    job.replicas->stop();
    return fmt::format("{} {}", trains_on, job.replicas->communicated_bytes());
  });
  for (const auto& result : results) CHECK(result.text == "false 0");
}

}  // namespace
