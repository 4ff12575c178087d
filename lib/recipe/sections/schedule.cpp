#include "lib/recipe/sections/schedule.h"

#include "lib/recipe/component.h"
#include "lib/recipe/duration.h"

namespace scaletrain::recipe {
namespace {

TypePtr length(std::optional<Duration>& value) {
  return optional(value, [](Duration& inner) {
    return duration(inner, {Duration::Unit::kSteps, Duration::Unit::kEpochs}, true);
  });
}

}  // namespace

TypePtr describe(Schedule& value) {
  auto keys = std::make_unique<Object>();
  keys->add("warmup", length(value.warmup), "how long the learning rate rises to lr")
      .add("warmup_from", number(value.warmup_from, from(0).below(1)),
           "what it rises from, over lr; 0: one step's share of lr")
      .add("warmup_shape", choice(value.warmup_shape, {"linear", "exponential"}),
           "in a straight line, or by the same factor each step, which needs warmup_from above 0")
      .add("decay", component(value.decay, schedules()), "how it goes on from there")
      .add("cooldown", length(value.cooldown),
           "how long, at the end, it stays what the decay ended with")
      .add("plateau", optional(value.plateau, [](Plateau& inner) { return describe(inner); }),
           "it drops besides where data.val gets no better, as PyTorch's ReduceLROnPlateau")
      .add("by", choice(value.by, {"step", "epoch"}),
           "the decay moves with each step, or only where an epoch begins")
      .set_short_for("decay");
  return keys;
}

void check(const Schedule& schedule, const Node& tree, Problems& problems) {
  if (schedule.warmup_shape == "exponential" && schedule.warmup_from == 0) {
    problems.add(written_at(tree, {"schedule", "warmup_shape"}), "/schedule/warmup_shape",
                 "exponential cannot rise from 0", R"(give "warmup_from", such as 0.01)");
  }
  if (schedule.decay.name == "one_cycle" && schedule.warmup) {
    problems.add(written_at(tree, {"schedule", "warmup"}), "/schedule/warmup",
                 "one_cycle has a rise of its own", R"(leave it out, and set "rise_share")");
  }
}

}  // namespace scaletrain::recipe
