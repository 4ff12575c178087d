#include "lib/recipe/sections/plateau.h"

#include "lib/recipe/schema/object.h"
#include "lib/recipe/sections/checkpoint.h"

namespace scaletrain::recipe {

TypePtr describe(Plateau& value) {
  auto keys = std::make_unique<Object>();
  keys->add("metric", measure_name(value.metric),
            "a measure of the task; without it that of checkpoint.best")
      .add("factor", number(value.factor, above(0).below(1)), "factor of a drop")
      .add("patience", integer(value.patience, from(0).to(1e9)),
           "it drops after more than so many validations in a row that are no better")
      .add("threshold", number(value.threshold, from(0).below(1)),
           "a validation is better by more than this share of the best")
      .add("cooldown", integer(value.cooldown, from(0).to(1e9)),
           "so many validations after a drop are not counted")
      .add("min_lr", number(value.min_lr, from(0).to(1000)), "the learning rate falls no lower");
  return keys;
}

void check(const Plateau& plateau, const TaskRow& task, const Node& tree, Problems& problems) {
  check_measure(plateau.metric, task, written_at(tree, {"schedule", "plateau", "metric"}),
                "/schedule/plateau/metric", problems);
}

}  // namespace scaletrain::recipe
