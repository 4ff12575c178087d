#include "lib/recipe/sections/anomaly.h"

#include "lib/recipe/schema/object.h"

namespace scaletrain::recipe {

TypePtr describe(std::optional<Anomaly>& value) {
  return optional(value, [](Anomaly& inner) {
    auto keys = std::make_unique<Object>();
    keys->add(
            "policy",
            choice(inner.policy,
                   {{"skip", "Skips the update of the step."},
                    {"clip",
                     "Clips the gradient norm to its bound, as ZClip; a step that is not finite is "
                     "skipped."},
                    {"rollback",
                     "Restores the last checkpoint and continues with the next step, so that the "
                     "batches in between are skipped. On a GPU each step waits for its result."},
                    {"reduce_lr", "Skips the update and multiplies the learning rate by `factor`."},
                    {"stop", "Ends the run as diverged (exit code 76)."}}),
            "Action for an anomalous step. Default: skip.")
        .add("spike", number(inner.spike, above(0).to(1e6)),
             "Bound of loss and gradient norm: this many robust standard deviations above the "
             "median of the last `window` steps, on a logarithmic scale. Default: 6.")
        .add("window", integer(inner.window, from(4).to(100000)),
             "Number of previous steps whose median and deviation give the bound. Nothing counts "
             "as a spike before half of them are known. Default: 100.")
        .add("max", integer(inner.max, from(0).to(1e9)),
             "Maximum number of anomalous steps among the last `window` steps; one more ends the "
             "run as diverged. Default: 10.")
        .add("factor", number(inner.factor, above(0).below(1)),
             "Factor by which `reduce_lr` multiplies the learning rate at each anomalous step. "
             "Default: 0.5.")
        .add("saturation", integer(inner.saturation, from(0).to(1e9)),
             "Number of steps with an unchanged loss, or with vanished gradients, before a "
             "warning. Default: 0, one percent of the run and at least 20.");
    return keys;
  });
}

}  // namespace scaletrain::recipe
