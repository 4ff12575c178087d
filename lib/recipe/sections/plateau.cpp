#include "lib/recipe/sections/plateau.h"

#include "lib/recipe/schema/object.h"
#include "lib/recipe/sections/checkpoint.h"

namespace scaletrain::recipe {

TypePtr describe(Plateau& value) {
  auto keys = std::make_unique<Object>();
  keys->add("metric", measure_name(value.metric),
            "Monitored validation metric. Default: that of checkpoint.best, for example top1.")
      .add("factor", number(value.factor, above(0).below(1)),
           "Factor by which each reduction multiplies the learning rate. Default: 0.1.")
      .add("patience", integer(value.patience, from(0).to(1e9)),
           "Number of validations without improvement that are tolerated; the next one reduces the "
           "learning rate. Default: 10.")
      .add("threshold", number(value.threshold, from(0).below(1)),
           "Minimum relative improvement that counts, as a share of the best value. Default: "
           "0.0001.")
      .add("cooldown", integer(value.cooldown, from(0).to(1e9)),
           "Number of validations after a reduction that do not count for patience. Default: 0.")
      .add("min_lr", number(value.min_lr, from(0).to(1000)),
           "Lower bound of the learning rate. Default: 0.");
  return keys;
}

void check(const Plateau& plateau, const TaskRow& task, const Node& tree, Problems& problems) {
  check_measure(plateau.metric, task, written_at(tree, {"schedule", "plateau", "metric"}),
                "/schedule/plateau/metric", problems);
}

}  // namespace scaletrain::recipe
