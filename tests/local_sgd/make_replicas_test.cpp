#include "lib/local_sgd/make_replicas.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/dist/ranks.h"
#include "tests/local_sgd/replica_job.h"

namespace {

using namespace scaletrain;

TEST_CASE("each synchronization method has the traits that records and checkpoints depend on") {
  struct MethodCase {
    const char* name;
    bool decoupled;
    int world_size;
    const char* expected;  // of rank 1, or of the only one
  };
  const std::vector<MethodCase> cases{
      {"every_step", false, 2, "all-reduces gradients; leads"},
      {"periodic", false, 2, "steps alone; leads; optimizer; mean"},
      {"diloco", false, 2, "steps alone; leads; optimizer; outer"},
      {"diloco", true, 2, "steps alone; optimizer; loss scale; outer; replica 0"},
      {"async", true, 2, "steps alone; mean; replica 0; notice"},
      {"diloco", true, 1, "steps alone; leads; outer"},
      {"async", true, 1, "steps alone; leads; mean"},
  };
  for (const MethodCase& one : cases) {
    CAPTURE(one.expected);
    const auto results =
        testing::run_ranks({.world_size = one.world_size}, [&](const core::WorkerEnv& env) {
          testing::ReplicaJob job(env, {.sync = {.name = one.name, .steps = 4}}, one.decoupled);
          const local_sgd::ReplicaTraits& traits = job.replicas->traits();
          std::string text = traits.steps_alone ? "steps alone" : "all-reduces gradients";
          if (traits.leads) text += "; leads";
          if (traits.local_optimizer) text += "; optimizer";
          if (traits.local_loss_scale) text += "; loss scale";
          if (!traits.evaluated_weights.empty()) text += "; " + traits.evaluated_weights;
          if (traits.reported_replica)
            text += fmt::format("; replica {}", *traits.reported_replica);
          if (!traits.notice.empty()) text += "; notice";
          if (job.replicas->stop_requested()) text += "; stops";
          job.replicas->stop();
          return text;
        });
    CHECK(results.back().text == one.expected);
  }
}

}  // namespace
