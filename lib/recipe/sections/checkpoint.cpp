#include "lib/recipe/sections/checkpoint.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "lib/recipe/duration.h"

namespace scaletrain::recipe {

namespace {

std::vector<std::string> all_measures() {
  std::vector<std::string> names;
  for (const TaskRow& task : tasks()) {
    for (const Measure& measure : task.measures) {
      const bool is_known = std::find(names.begin(), names.end(), measure.name) != names.end();
      if (!is_known) names.push_back(measure.name);
    }
  }
  return names;
}

TypePtr describe_best(Best& value) {
  auto keys = std::make_unique<Object>();
  keys->add("metric", choice(value.metric, all_measures()),
            "a measure of the task, its first by default")
      .add("mode", choice(value.mode, {"max", "min"}),
           "what is better; without it what is better by that measure")
      .set_short_for("metric");
  return keys;
}

}  // namespace

TypePtr describe(Checkpoint& value) {
  auto keys = std::make_unique<Object>();
  keys->add("every", duration(value.every, any_unit()), "how often one is written")
      .add("keep_last", integer(value.keep_last, from(1).to(kMostCount)),
           "so many of the newest are kept")
      .add("keep_best", integer(value.keep_best, from(0).to(kMostCount)),
           "so many of the best by validation are kept beside them; of equals the earlier")
      .add("best", describe_best(value.best), "what makes one the best")
      .reserve({"mirror"});
  return keys;
}

void check_best(const Best& best, const TaskRow& task, const Node& tree, Problems& problems) {
  if (best.metric.empty() || task.measure(best.metric) != nullptr) return;
  std::vector<std::string> names;
  for (const Measure& measure : task.measures) names.push_back(measure.name);
  problems.add(written_at(tree, {"checkpoint", "best"}), "/checkpoint/best/metric",
               fmt::format("{} does not measure {}", task.name, best.metric),
               fmt::format("use one of: {}", fmt::join(names, ", ")));
}

void complete(Best& best, const TaskRow& task) {
  if (best.metric.empty()) best.metric = task.measures.front().name;
  if (!best.mode.empty()) return;
  const bool higher = task.measure(best.metric)->better == Measure::Better::kHigher;
  best.mode = higher ? "max" : "min";
}

}  // namespace scaletrain::recipe
