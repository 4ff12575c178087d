#include "lib/recipe/sections/early_stopping.h"

#include "lib/recipe/schema/object.h"
#include "lib/recipe/sections/checkpoint.h"

namespace scaletrain::recipe {

TypePtr describe(std::optional<EarlyStopping>& value) {
  return optional(value, [](EarlyStopping& inner) {
    auto keys = std::make_unique<Object>();
    keys->add("metric", measure_name(inner.metric),
              "Monitored validation metric. Default: that of checkpoint.best, for example top1.")
        .add("patience", integer(inner.patience, from(1).to(1e9)),
             "Number of validations in a row without improvement after which training ends. "
             "Default: 5.")
        .add("min_delta", number(inner.min_delta, from(0).to(1e9)),
             "Minimum improvement that counts, in units of the metric. Default: 0.");
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
