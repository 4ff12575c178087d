#include "launcher/commands/plan/run_score.h"

#include <fmt/format.h>

#include "launcher/runs/run_results.h"
#include "lib/core/error.h"
#include "lib/core/text/table.h"
#include "lib/observe/device_kinds.h"
#include "lib/recipe/load.h"

namespace scaletrain::launcher {
namespace {

std::optional<ScoredValue> scored(double predicted, const RunValue* measured) {
  if (measured == nullptr || !(measured->value > 0) || !(predicted > 0)) return std::nullopt;
  return ScoredValue{.predicted = predicted, .measured = measured->value};
}

std::vector<std::string> line_of(const char* name, const ScoredValue& value) {
  return {name, fmt::format("{:.4g}", value.predicted), fmt::format("{:.4g}", value.measured),
          fmt::format("{:+.1f} %", 100 * value.error())};
}

}  // namespace

recipe::Recipe recipe_of_run(const RunRecord& run) {
  return recipe::load_recipe((run.folder / "recipe.json").string(), {});
}

std::string device_of_run(const RunRecord& run) {
  const RunJson start = read_object(run.folder / "start.json");
  const auto devices = start.is_object() ? start.find("devices") : start.end();
  if (devices == start.end() || !devices->is_object()) return "";
  return observe::device_called(string_of(*devices, "name"));
}

PlanTarget target_of_run(const RunRecord& run, const std::string& device) {
  const RunJson start = read_object(run.folder / "start.json");
  const auto devices = start.is_object() ? start.find("devices") : start.end();
  const bool is_known = start.is_object() && devices != start.end() && devices->is_object() &&
                        devices->value("ranks", 0) > 0 && devices->value("nodes", 0) > 0;
  if (!is_known) {
    throw core::UsageError(run.shown, "start.json has no number of ranks",
                           "use a run that has trained at least one step");
  }
  const int nodes = devices->value("nodes", 1);
  return {.device = device, .nproc = devices->value("ranks", 1) / nodes, .nodes = nodes};
}

Score score_run(const RunRecord& run, const PlanTarget& target, const Prediction& prediction) {
  const std::vector<RunValue> values = run_results(run);
  Score score{.run = std::filesystem::absolute(run.folder).lexically_normal().string(),
              .device = target.device};
  score.memory_bytes = scored(prediction.memory.total(), find_value(values, "memory_bytes"));
  score.seconds = scored(prediction.cost.seconds, find_value(values, "seconds"));
  const RunValue* const rate = find_value(values, "samples_per_s");
  if (rate != nullptr && rate->value > 0 && prediction.time.total() > 0) {
    score.step_s =
        ScoredValue{.predicted = prediction.time.total(),
                    .measured = static_cast<double>(prediction.global_batch) / rate->value};
  }
  return score;
}

std::string score_text(const Score& score) {
  std::vector<std::vector<std::string>> lines{{"value", "predicted", "measured", "error"}};
  if (score.step_s) lines.push_back(line_of("step_s", *score.step_s));
  if (score.memory_bytes) lines.push_back(line_of("memory_bytes", *score.memory_bytes));
  if (score.seconds) lines.push_back(line_of("seconds", *score.seconds));
  return core::text_table(lines);
}

}  // namespace scaletrain::launcher
