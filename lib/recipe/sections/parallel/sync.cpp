#include "lib/recipe/sections/parallel/sync.h"

#include <fmt/format.h>

#include <string>

#include "lib/recipe/schema/object.h"

namespace scaletrain::recipe {
namespace {

constexpr std::int64_t kUsualSteps = 8, kDilocoSteps = 100;

std::int64_t steps_of(const Sync& sync) {
  if (sync.steps > 0) return sync.steps;
  if (!sync.is_rare()) return 1;
  return sync.name == "diloco" ? kDilocoSteps : kUsualSteps;
}

TypePtr describe(OuterOptimizer& value) {
  auto keys = std::make_unique<Object>();
  keys->add("lr", number(value.lr, above(0).to(1000)),
            "Outer learning rate. Default: 0.7. With 1, and momentum 0, the outer step is the mean "
            "of the replicas.")
      .add("momentum", number(value.momentum, from(0).below(1)),
           "Nesterov momentum of the outer optimizer. Default: 0.9.");
  return keys;
}

// Refuses decisions that one replica would make for all decoupled replicas, which do not
// communicate in each step. (diloco uses collectives if a recipe has any of them:
// lib/recipe/apart.h.)
void check_apart(const SyncedWith& with, const auto& refuse) {
  if (with.batch.ramp) {
    refuse("replicas at different steps would have batches of different sizes",
           "leave batch.ramp out, or use every_step");
  }
  if (with.schedule.plateau) {
    refuse("a plateau would lower the learning rate of rank 0 alone, which validates",
           "leave schedule.plateau out, or use every_step");
  }
  if (with.early_stopping) {
    refuse("early_stopping would end rank 0 alone, which validates",
           "leave early_stopping out, or use every_step");
  }
  if (with.order == "streamed") {
    refuse(
        "the streamed order counts samples over all replicas, and decoupled replicas share no "
        "collective",
        R"(use another data.order, or every_step)");
  }
}

}  // namespace

TypePtr describe(Sync& value) {
  auto keys = std::make_unique<Object>();
  keys->add(
          "name",
          choice(value.name,
                 {{"every_step", "Synchronous data parallelism: all-reduces gradients every step."},
                  {"periodic", "Local SGD: averages the weights every `steps` steps."},
                  {"diloco",
                   "DiLoCo: every `steps` steps an outer optimizer applies the averaged change of "
                   "the weights."},
                  {"async",
                   "Asynchronous averaging: each replica averages its weights every `steps` steps "
                   "without waiting for the others."}}),
          "Synchronization method. Default: every_step.")
      .add("steps", integer(value.steps, from(0).to(kMostCount)),
           "Local steps between synchronizations. Default: 8, or 100 with DiLoCo.")
      .add("outer", describe(value.outer),
           "Outer optimizer of DiLoCo: SGD with Nesterov momentum. Default: lr 0.7, momentum 0.9.")
      .add("fragments", integer(value.fragments, from(1).to(4096)),
           "Streaming DiLoCo: number of model fragments, each synchronized at its own steps. "
           "Default: 1.")
      .add("overlap", integer(value.overlap, from(0).to(kMostCount)),
           "Streaming DiLoCo: number of local steps that continue during the synchronization of a "
           "fragment. Default: 0, replicas wait.")
      .add("mix", number(value.mix, from(0).below(1)),
           "Streaming DiLoCo with overlap: share of its own weights that a replica keeps when an "
           "outer step arrives. Default: 0.5.")
      .add("staleness", integer(value.staleness, from(0).to(kMostCount)),
           "Asynchronous averaging: number of synchronizations that a replica may be ahead of the "
           "slowest one before it waits. Default: 4.")
      .set_short_for("name");
  return keys;
}

void check(const Sync& sync, const SyncedWith& with, const Node& tree, Problems& problems) {
  if (!sync.is_rare()) return;
  const auto refuse = [&](const std::string& found, const std::string& remedy) {
    problems.add(written_at(tree, {"sync"}), "/sync", found, remedy);
  };
  if (sync.name == "diloco" && sync.fragments > steps_of(sync)) {
    refuse(fmt::format("{} fragments are synchronized at different steps, and there are {} between "
                       "two synchronizations",
                       sync.fragments, steps_of(sync)),
           "use more steps, or fewer fragments");
  }
  const std::int64_t apart = steps_of(sync) / sync.fragments;
  if (sync.name == "diloco" && apart > 0 && sync.overlap >= apart) {
    refuse(fmt::format("an overlap of {} steps would not be over when the next synchronization "
                       "begins, {} later",
                       sync.overlap, apart),
           "use less overlap, more steps, or fewer fragments");
  }
  if (with.precision.name == "bf16_pure") {
    refuse("the mean of bf16 weights loses the small changes of a few steps",
           "use bf16 as precision, or every_step");
  }
  if (with.precision.name == "fp64" && sync.is_async()) {
    refuse("replicas communicate fp32 weights through rank 0", "use fp32 as precision, or diloco");
  }
  if (is_mean_of_weights(with.optimizer)) {
    refuse(fmt::format("{} keeps weights in its state, which are not synchronized",
                       with.optimizer.name),
           "use another optimizer, or every_step");
  }
  if (with.offload && with.offload->optimizer) {
    refuse("an offloaded optimizer has its own copy of the weights, which is not synchronized",
           "leave offload.optimizer out, or use every_step");
  }
  if (with.writers == "rank_0" && with.parallel.tensor > 1) {
    refuse(fmt::format("each replica's optimizer has its own state, of which rank 0 of \"tensor\": "
                       "{} has a part",
                       with.parallel.tensor),
           "leave checkpoint.writers out, or use every_step");
  }
  if (with.writers == "all") {
    refuse(
        "each replica has its own optimizer state, and checkpoint.writers is for state that all "
        "ranks share",
        "leave checkpoint.writers out, or use every_step");
  }
  if (with.sam) {
    refuse("sam needs gradients averaged over all replicas, and each replica has its own",
           "leave sam out, or use every_step");
  }
  if (sync.is_async()) check_apart(with, refuse);
  if (with.ema || with.swa) {
    refuse(fmt::format("{} would be the mean of one replica's weights", with.ema ? "ema" : "swa"),
           "leave it out, or use every_step");
  }
}

void complete(Sync& sync) {
  sync.steps = steps_of(sync);
  if (sync.name == "diloco") return;
  sync.fragments = 1;
  sync.overlap = 0;
}

}  // namespace scaletrain::recipe
