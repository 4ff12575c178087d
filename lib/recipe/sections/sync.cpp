#include "lib/recipe/sections/sync.h"

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
            "learning rate; 1 without momentum goes to the mean")
      .add("momentum", number(value.momentum, from(0).below(1)),
           "Nesterov's: share of the last outer step that is kept");
  return keys;
}

// What one replica would decide for all, who do not meet in each step. (diloco's exchange by
// collectives where a recipe has any of it: lib/recipe/apart.h.)
void check_apart(const SyncedWith& with, const auto& refuse) {
  if (with.batch.ramp) {
    refuse("replicas that are not at the same step would have batches of other sizes",
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
    refuse("replicas count the samples of streamed shards together, and these do not meet",
           R"(use another data.order, or every_step)");
  }
}

}  // namespace

TypePtr describe(Sync& value) {
  auto keys = std::make_unique<Object>();
  keys->add("name", choice(value.name, {"every_step", "periodic", "diloco", "async"}),
            "every_step: gradients, in each step; periodic: the mean of the weights, now and then; "
            "diloco: the same as one step of an outer optimizer; async: the mean, to which each "
            "replica comes when it can")
      .add("steps", integer(value.steps, from(0).to(kMostCount)),
           "that each replica makes alone from one exchange to the next; 0: 8 of periodic and "
           "async, 100 of diloco")
      .add("outer", describe(value.outer), "of diloco: its outer optimizer")
      .add("fragments", integer(value.fragments, from(1).to(4096)),
           "of diloco: parts of the model, each exchanged at steps of its own")
      .add("overlap", integer(value.overlap, from(0).to(kMostCount)),
           "of diloco: steps that replicas go on for while a fragment is exchanged; 0: they wait")
      .add("mix", number(value.mix, from(0).below(1)),
           "with overlap: share of a replica's own weights in those that it goes on from then; the "
           "rest are the outer ones")
      .add("staleness", integer(value.staleness, from(0).to(kMostCount)),
           "of async: exchanges that a replica may be ahead of the slowest one; there it waits")
      .set_short_for("name");
  return keys;
}

void check(const Sync& sync, const SyncedWith& with, const Node& tree, Problems& problems) {
  if (!sync.is_rare()) return;
  const auto refuse = [&](const std::string& found, const std::string& remedy) {
    problems.add(written_at(tree, {"sync"}), "/sync", found, remedy);
  };
  if (sync.name == "diloco" && sync.fragments > steps_of(sync)) {
    refuse(fmt::format("{} fragments are exchanged at steps of their own, and there are {} from "
                       "one exchange to the next",
                       sync.fragments, steps_of(sync)),
           "use more steps, or fewer fragments");
  }
  const std::int64_t apart = steps_of(sync) / sync.fragments;
  if (sync.name == "diloco" && apart > 0 && sync.overlap >= apart) {
    refuse(fmt::format("an exchange of {} steps would not be over when the next one begins, {} "
                       "behind it",
                       sync.overlap, apart),
           "use less overlap, more steps, or fewer fragments");
  }
  if (with.precision.name == "bf16_pure") {
    refuse("the mean of bf16 weights loses what a few steps have changed",
           "use bf16 as precision, or every_step");
  }
  if (with.precision.name == "fp64" && sync.is_async()) {
    refuse("replicas exchange fp32 weights through rank 0", "use fp32 as precision, or diloco");
  }
  if (is_mean_of_weights(with.optimizer)) {
    refuse(
        fmt::format("{} keeps weights in its state, which are not exchanged", with.optimizer.name),
        "use another optimizer, or every_step");
  }
  if (with.offload && with.offload->optimizer) {
    refuse("an optimizer that is offloaded has weights of its own, which are not exchanged",
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
        "each replica's optimizer has its own state, and checkpoint.writers is for one that all "
        "have",
        "leave checkpoint.writers out, or use every_step");
  }
  if (with.sam) {
    refuse("sam looks nearby for the gradients of all replicas, and each has its own",
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
