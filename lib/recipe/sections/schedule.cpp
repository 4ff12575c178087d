#include "lib/recipe/sections/schedule.h"

#include "lib/recipe/catalog/component.h"
#include "lib/recipe/catalog/duration.h"

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
  keys->add("warmup", length(value.warmup),
            "Learning rate warmup in steps or epochs, for example {\"epochs\": 5}. Default: none.")
      .add("warmup_from", number(value.warmup_from, from(0).below(1)),
           "Initial learning rate of the warmup as a share of lr (start_factor of PyTorch's "
           "LinearLR). Default: 0; the first of N warmup steps has lr / N.")
      .add("warmup_shape",
           choice(value.warmup_shape,
                  {{"linear", "Straight line."},
                   {"exponential",
                    "Rises by the same factor in each step; needs warmup_from above 0."}}),
           "Shape of the warmup. Default: linear.")
      .add("decay", component(value.decay, schedules()),
           "Learning rate decay after the warmup. Default: constant.")
      .add("cooldown", length(value.cooldown),
           "Final steps or epochs at the learning rate that the decay has reached, as timm's "
           "--cooldown-epochs. Default: none.")
      .add("plateau", optional(value.plateau, [](Plateau& inner) { return describe(inner); }),
           "Lowers the learning rate when validation stops improving, as PyTorch's "
           "ReduceLROnPlateau. Default: off.")
      .add("by",
           choice(value.by,
                  {{"step", "Changes in every step."},
                   {"epoch",
                    "Changes at the start of each epoch, as timm without --sched-on-updates."}}),
           "Interval at which the decay changes the learning rate. Default: step.")
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
                 "one_cycle has its own warmup", R"(leave it out, and set "rise_share")");
  }
}

}  // namespace scaletrain::recipe
