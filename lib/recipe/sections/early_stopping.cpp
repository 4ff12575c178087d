#include "lib/recipe/sections/early_stopping.h"

#include "lib/recipe/schema/object.h"
#include "lib/recipe/sections/checkpoint.h"

namespace scaletrain::recipe {

TypePtr describe(std::optional<EarlyStopping>& value) {
  return optional(value, [](EarlyStopping& inner) {
    auto keys = std::make_unique<Object>();
    keys->add("metric", measure_name(inner.metric),
              "a measure of the task; without it that of checkpoint.best")
        .add("patience", integer(inner.patience, from(1).to(1e9)),
             "training ends after so many validations in a row that are no better")
        .add("min_delta", number(inner.min_delta, from(0).to(1e9)),
             "a validation is better by more than this");
    return keys;
  });
}

void check(const std::optional<EarlyStopping>& stopping, const TaskRow& task, const Node& tree,
           Problems& problems) {
  if (!stopping) return;
  check_measure(stopping->metric, task, written_at(tree, {"early_stopping", "metric"}),
                "/early_stopping/metric", problems);
}

}  // namespace scaletrain::recipe
