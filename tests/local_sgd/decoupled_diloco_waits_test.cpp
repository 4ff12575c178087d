// How decoupled DiLoCo replicas wait for each other, stop while they wait, and share states.
#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include <csignal>

#include "lib/core/log.h"
#include "lib/local_sgd/decoupled_diloco.h"
#include "tests/dist/ranks.h"
#include "tests/local_sgd/gate.h"
#include "tests/local_sgd/replica_job.h"

namespace {

using namespace scaletrain;
using local_sgd::StateRequest;
using testing::Gate;
using testing::ReplicaJob;
using testing::run_ranks;

// The outer step gives the mean of the replicas.
const recipe::Sync kMeanOfFour{.name = "diloco", .steps = 4, .outer = {.lr = 1, .momentum = 0}};

void train_to(ReplicaJob& job, int& step, int end) {
  for (; step < end; ++step) job.replicas->after_step(step);
}

TEST_CASE("without a stop replicas wait for a slow one without a limit") {
  const auto results = run_ranks({.world_size = 2}, [](const core::WorkerEnv& env) {
    ReplicaJob job(env, {.sync = kMeanOfFour}, /*decoupled=*/true);
    std::string said;
    core::set_warning_listener([&](const std::string&) { said += "warned, "; });
    job.fill(env.rank);
    int step = 0;
    train_to(job, step, 3);
    if (env.rank == 1) usleep(300'000);  // rank 0 has looked for a stop by then
    train_to(job, step, 4);
    said += fmt::format("{:.3f} {}", job.weight(), job.replicas->stop_requested());
    job.replicas->finish();
    job.replicas->finish();  // nothing more
    return said;
  });
  for (const auto& result : results) CHECK(result.text == "0.500 false");
}

TEST_CASE("a signal that arrives while a replica waits in an exchange stops all replicas") {
  const auto results = run_ranks({.world_size = 2}, [](const core::WorkerEnv& env) {
    core::install_stop_handlers();
    ReplicaJob job(env, {.sync = kMeanOfFour}, /*decoupled=*/true);
    job.fill(env.rank);
    int step = 0;
    if (env.rank == 0) std::raise(SIGTERM);
    train_to(job, step, env.rank == 0 ? 4 : 2);  // rank 0 waits, and gives the exchange up
    std::string said = fmt::format("{} bytes, ", job.replicas->communicated_bytes());
    while (env.rank == 1 && !job.replicas->stop_requested()) usleep(1000);
    core::StopReason stop = core::StopReason::kNone;  // the step has not looked for the signal yet
    while (job.replicas->before_step(stop)) train_to(job, step, step + 1);
    job.replicas->stop();
    return said + fmt::format("stop at {}, {:.3f}", step, job.weight());
  });
  for (const auto& result : results) CHECK(result.text == "0 bytes, stop at 4, 0.500");
}

TEST_CASE("a stop that arrives while replicas share states is kept for later") {
  const Gate has_shared, has_heard;
  const auto results = run_ranks({.world_size = 3}, [&](const core::WorkerEnv& env) {
    local_sgd::LocalSgdOptions options{.sync = {.name = "diloco", .steps = 100}};
    options.states = [](StateRequest) {
      return std::vector<std::pair<std::string, at::Tensor>>{{"own", at::ones({2})}};
    };
    ReplicaJob job(env, std::move(options), /*decoupled=*/true);
    int step = 0;
    train_to(job, step, 5 + env.rank);
    if (env.rank == 1) {
      has_shared.wait();
      core::install_stop_handlers();
      std::raise(SIGTERM);  // it asks for the stop while it waits for the request
    }
    job.replicas->share(StateRequest::kSave);
    if (env.rank == 2) has_shared.open();
    std::string said = fmt::format("{} shared, ", job.replicas->states().present.size());
    if (env.rank == 0) {
      said += job.replicas->stop_requested() ? "asked, " : "not asked, ";
      has_heard.open();
    }
    if (env.rank == 2) has_heard.wait();
    while (!job.replicas->stop_requested()) usleep(1000);  // rank 1 hears of the agreed step
    core::StopReason stop = core::StopReason::kNone;
    while (job.replicas->before_step(stop)) train_to(job, step, step + 1);
    job.replicas->stop();
    return said + fmt::format("stop at {}", step);
  });
  CHECK(results[0].text == "3 shared, asked, stop at 7");
  CHECK(results[1].text == "0 shared, stop at 7");
  CHECK(results[2].text == "0 shared, stop at 7");
}

TEST_CASE("rank 0 leaves when all others have, or after a part of the grace period") {
  for (const bool others_leave : {true, false}) {
    CAPTURE(others_leave);
    const Gate has_left;
    const auto results = run_ranks({.world_size = 2}, [&](const core::WorkerEnv& env) {
      ReplicaJob job(env, {.sync = kMeanOfFour, .grace_s = others_leave ? 60.0 : 0.2},
                     /*decoupled=*/true);
      if (env.rank == 0) {
        job.replicas->stop();
        const bool all_left = job.replicas->membership()[1].has_left;
        has_left.open();
        return fmt::format("all left: {}", all_left);
      }
      if (others_leave) {
        // The first synchronization is answered as rank 0 leaves, when it comes to none any more.
        int step = 0;
        train_to(job, step, 80);
        job.replicas->finish();
      } else {
        has_left.wait();
      }
      return std::string();
    });
    CHECK(results[0].text == fmt::format("all left: {}", others_leave));
    CHECK(results[1].status == 0);
  }
}

TEST_CASE("rank 0 receives the states of each replica, but of one that is lost or has others") {
  const auto results = run_ranks({.world_size = 3}, [](const core::WorkerEnv& env) {
    local_sgd::LocalSgdOptions options{.sync = kMeanOfFour};
    options.states = [&](StateRequest request) {
      if (env.rank == 2) std::raise(SIGKILL);
      const bool has_other = env.rank == 1 && request == StateRequest::kSave;
      return std::vector<std::pair<std::string, at::Tensor>>{
          {"matrix", at::full({2, 3}, 10 * env.rank, at::kDouble)},
          {"count", at::full(has_other ? std::vector<std::int64_t>{2} : std::vector<std::int64_t>{},
                             env.rank, at::kLong)},
          {"empty", at::empty({0})}};
    };
    ReplicaJob job(env, std::move(options), /*decoupled=*/true);
    std::string said;
    for (const StateRequest request :
         {StateRequest::kNothing, StateRequest::kEvaluation, StateRequest::kSave}) {
      // Rank 0's request counts.
      job.replicas->share(env.rank == 0 ? request : StateRequest::kNothing);
      const local_sgd::ReplicaStates& states = job.replicas->states();
      said += fmt::format("{} present", states.present.size());
      for (const auto& [name, all] : states.tensors) {
        said += fmt::format(", {}", name);
        for (const std::int64_t size : all.sizes()) said += fmt::format(" {}", size);
        if (all.numel() > 0) said += fmt::format(": {}", all[1].flatten()[0].item<double>());
      }
      said += "; ";
    }
    job.replicas->finish();
    return said;
  });
  // Rows of replicas that are not present are copies of rank 0's.
  CHECK(results[0].text ==
        "0 present; 2 present, count 3: 1, empty 3 0, matrix 3 2 3: 10; "
        "1 present, count 3: 0, empty 3 0, matrix 3 2 3: 0; ");
  CHECK(results[1].text == "0 present; 0 present; 0 present; ");
}

TEST_CASE("each rank of rank 0's replica receives the states of its place in the others") {
  const auto results = run_ranks({.world_size = 4}, [](const core::WorkerEnv& env) {
    local_sgd::LocalSgdOptions options{.sync = kMeanOfFour};
    options.states = [&](StateRequest) {
      return std::vector<std::pair<std::string, at::Tensor>>{
          {"own", at::full({2 + env.rank % 2}, 10 * env.rank)}};
    };
    ReplicaJob job(env, std::move(options), /*decoupled=*/true, 0,
                   {.pipe = 1, .replica = {}, .shard = 2});
    job.replicas->share(StateRequest::kSave);
    std::string said = fmt::format("{} present", job.replicas->states().present.size());
    for (const auto& [name, all] : job.replicas->states().tensors) {
      said += fmt::format(", {} of {}", all.size(1), all[1][1].item<double>());
    }
    job.replicas->finish();
    job.mesh.world().barrier("the hub may end");
    return said;
  });
  CHECK(results[0].text == "2 present, 2 of 20");
  CHECK(results[1].text == "2 present, 3 of 30");
  CHECK(results[2].text == "0 present");
  CHECK(results[3].text == "0 present");
}

}  // namespace
