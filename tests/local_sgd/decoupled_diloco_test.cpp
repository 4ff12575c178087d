// Replicas of diloco that are apart (lib/local_sgd/diloco_client.h).
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <array>
#include <csignal>

#include "lib/local_sgd/weight_sync.h"
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
        ReplicaJob job(env, sync, 10, rounded_to);
        if (apart) job.exchange.go_apart(0, "127.0.0.1", job.mesh);
        for (int step = 0; step < 10; ++step) {
          learn(job.all, env.rank, step);
          job.exchange.after_step(step);
        }
        if (apart) job.exchange.rounds()->leave(std::nullopt);
        std::string said = fmt::format("{}", job.exchange.exchanged_bytes());
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

TEST_CASE("diloco replicas go on without one that is killed, and have the same bits") {
  const auto results = run_ranks({.world_size = 3}, [&](const core::WorkerEnv& env) {
    ReplicaJob job(env, {.name = "diloco", .steps = 4, .fragments = 2}, 20);
    job.exchange.go_apart(0, "127.0.0.1", job.mesh);
    for (int step = 0; step < 20; ++step) {
      learn(job.all, env.rank, step);
      if (env.rank == 2 && step == 8) std::raise(SIGKILL);
      job.exchange.after_step(step);
    }
    job.exchange.rounds()->leave(std::nullopt);
    double sum = 0;
    for (const auto& parameter : job.all) sum += parameter.tensor.detach().sum().item<double>();
    std::string said = fmt::format("{:a}", sum);
    if (env.rank != 0) return said;
    for (const auto& place : job.exchange.places()) {
      said += fmt::format(", {} {} {}", place.steps, place.is_done, place.is_lost);
    }
    return said;
  });
  CHECK(results[0].text == results[1].text + ", 20 true false, 20 true false, 8 false true");
  CHECK(results[2].status == 128 + SIGKILL);
}

TEST_CASE("diloco replicas that stop at other steps train to that of the furthest, or give less") {
  // Rank 2 is at step 6 and hears of the stop there, rank 0 at 5; rank 1 hears at 3 and has time
  // for nothing more, or comes to step 6 too.
  for (const bool has_time : {false, true}) {
    CAPTURE(has_time);
    const auto results = run_ranks({.world_size = 3}, [&](const core::WorkerEnv& env) {
      ReplicaJob job(env, {.name = "diloco", .steps = 100, .fragments = 2}, 1000);
      job.exchange.go_apart(0, "127.0.0.1", job.mesh);
      int step = 0;
      const auto train_to = [&](std::int64_t end) {
        for (; step < end; ++step) {
          learn(job.all, env.rank, step);
          job.exchange.after_step(step);
        }
      };
      train_to(std::array{5, 3, 6}.at(static_cast<std::size_t>(env.rank)));
      const std::int64_t furthest = job.exchange.rounds()->agree_on_stop(step);
      if (env.rank != 1 || has_time) train_to(furthest);
      job.exchange.exchange_all();
      job.exchange.rounds()->leave(30s);
      double sum = 0;
      for (const auto& parameter : job.all) sum += parameter.tensor.detach().sum().item<double>();
      std::string said =
          fmt::format("{} {} {} {} {:a}", furthest, job.exchange.differs(),
                      job.exchange.is_exchanged_after(100), job.exchange.exchanged_bytes(), sum);
      if (env.rank != 0) return said;
      for (const auto& place : job.exchange.places()) said += fmt::format(", {}", place.steps);
      return said;
    });
    CHECK(results[1].text.starts_with(fmt::format("6 false false {} ", 4 * kReplicaElements)));
    CHECK(results[2].text == results[1].text);
    CHECK(results[0].text == results[1].text + (has_time ? ", 6, 6, 6" : ", 6, 3, 6"));
  }
}

TEST_CASE("an exchange that a stop gives up is made once, where all have come to it") {
  const auto results = run_ranks({.world_size = 2}, [&](const core::WorkerEnv& env) {
    // The first fragment is due after step 2, where rank 0 waits; rank 1 hears of a stop before.
    ReplicaJob job(env, {.name = "diloco", .steps = 4, .fragments = 2}, 1000);
    job.exchange.go_apart(0, "127.0.0.1", job.mesh);
    const auto train = [&](int step) {
      learn(job.all, env.rank, step);
      job.exchange.after_step(step);
    };
    train(0);
    if (env.rank == 1) job.exchange.rounds()->agree_on_stop(1);
    train(1);
    const std::int64_t furthest = job.exchange.rounds()->agree_on_stop(2);
    std::string said = fmt::format("{} {}, ", furthest, job.exchange.exchanged_bytes());
    job.exchange.exchange_all();
    job.exchange.rounds()->leave(30s);
    double sum = 0;
    for (const auto& parameter : job.all) sum += parameter.tensor.detach().sum().item<double>();
    return said + fmt::format("{} {:a}", job.exchange.exchanged_bytes(), sum);
  });
  CHECK(results[0].text.starts_with(fmt::format("2 0, {} ", 4 * kReplicaElements)));
  CHECK(results[1].text == results[0].text);
}

TEST_CASE("diloco replicas that stop where they began again exchange nothing") {
  const auto results = run_ranks({.world_size = 2}, [](const core::WorkerEnv& env) {
    ReplicaJob job(env, {.name = "diloco", .steps = 4}, 1000);
    job.exchange.go_apart(6, "127.0.0.1", job.mesh);
    const std::int64_t furthest = job.exchange.rounds()->agree_on_stop(6);
    job.exchange.exchange_all();
    job.exchange.rounds()->leave(30s);
    return fmt::format("{} {}", furthest, job.exchange.exchanged_bytes());
  });
  for (const auto& result : results) CHECK(result.text == "6 0");
}

}  // namespace
