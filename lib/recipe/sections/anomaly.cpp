#include "lib/recipe/sections/anomaly.h"

#include "lib/recipe/schema/object.h"

namespace scaletrain::recipe {

TypePtr describe(std::optional<Anomaly>& value) {
  return optional(value, [](Anomaly& inner) {
    auto keys = std::make_unique<Object>();
    keys->add("policy",
              choice(inner.policy,
                     {{"skip", "Skips the update of the step."},
                      {"clip",
                       "Clips the gradients to the bound of their norm (as ZClip); skips steps "
                       "that are not finite."},
                      {"rollback",
                       "Restores the last checkpoint, and goes on after the step: the batches in "
                       "between are skipped. On a GPU each step's result is awaited."},
                      {"reduce_lr", "Skips the update and multiplies the learning rate by factor."},
                      {"stop", "Ends the run as diverged (exit code 76)."}}),
              "Policy for an anomalous step. Default: skip.")
        .add("spike", number(inner.spike, above(0).to(1e6)),
             "Bound of loss and gradient norm: so many robust standard deviations (scaled median "
             "absolute deviation of the logarithm) above the median. Default: 6.")
        .add("window", integer(inner.window, from(4).to(100000)),
             "Number of previous steps from which the bound is computed. There is none before half "
             "of them. Default: 100.")
        .add("max", integer(inner.max, from(0).to(1e9)),
             "Maximum number of anomalous steps among the last window steps; one more ends the run "
             "as diverged. Default: 10.")
        .add("factor", number(inner.factor, above(0).below(1)),
             "Factor of the learning rate at each anomalous step, with reduce_lr. Default: 0.5.")
        .add("saturation", integer(inner.saturation, from(0).to(1e9)),
             "Number of steps without a change of the loss, or with vanished gradients, before a "
             "warning. Default: 0, which is 1 % of the run and at least 20.");
    return keys;
  });
}

}  // namespace scaletrain::recipe
