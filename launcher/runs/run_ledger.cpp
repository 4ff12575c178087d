#include "launcher/runs/run_ledger.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "lib/observe/progress_text.h"
#include "lib/observe/run_times.h"
#include "lib/observe/slow_causes.h"
#include "lib/observe/summary.h"

namespace scaletrain::launcher {
namespace {

observe::RunTimes times_of(const RunRecord& run) {
  std::vector<RunJson> lines;
  for (const RunJson& record : run.others) {
    if (record.value("event", "") == "ledger") lines.push_back(record);
  }
  return observe::run_times(lines, run.journal);
}

double mean_of(const RunRecord& run, const char* field) {
  double sum = 0;
  const RunCurve curve = train_curve(run, field);
  for (const auto& [step, value] : curve) sum += value;
  return curve.empty() ? 0 : sum / static_cast<double>(curve.size());
}

// The value at `pointer` of the recipe, or `missing` if it is absent or of another type.
template <class Value>
Value value_at(const RunRecord& run, const char* pointer, Value missing) {
  const RunJson::json_pointer place(pointer);
  if (!run.recipe.contains(place)) return missing;
  const RunJson& value = run.recipe.at(place);
  const bool fits = std::is_same_v<Value, bool> ? value.is_boolean() : value.is_number();
  return fits ? value.get<Value>() : missing;
}

observe::RunCosts costs_of(const RunRecord& run) {
  return {.read_s = mean_of(run, "read_time"),
          .decode_s = mean_of(run, "decode_time"),
          .augment_s = mean_of(run, "augment_time"),
          .threads = value_at<std::int64_t>(run, "/data/threads", 0),
          .threads_searched =
              run.recipe.value(RunJson::json_pointer("/data/threads"), RunJson()) == "auto",
          .saves_async = value_at(run, "/checkpoint/async", true),
          .image_size = value_at<std::int64_t>(run, "/data/image_size", 0)};
}

struct WhatIf {
  const char *name, *label;
  double seconds;
};

std::array<WhatIf, 3> what_ifs(const observe::RunTimes& times) {
  return {{{"without_data_wait_s", "without data wait", times.without_data_wait_s()},
           {"without_communication_s", "without exposed communication",
            times.without_communication_s()},
           {"without_slowest_rank_s", "with the slowest rank as fast as the next",
            times.without_slowest_rank_s()}}};
}

}  // namespace

RunJson ledger_json(const RunRecord& run) {
  const observe::RunTimes times = times_of(run);
  if (times.wall_s <= 0) return nullptr;
  const std::vector<observe::SlowCause> causes = observe::slow_causes(times, costs_of(run));
  RunJson rows = RunJson::array();
  for (std::size_t i = 0; i < observe::kRunRows; ++i) {
    RunJson row{{"row", observe::row_name(i)},
                {"label", observe::row_label(i)},
                {"seconds", times.seconds[i]},
                {"percent", 100 * times.share(i)}};
    for (const observe::SlowCause& cause : causes) {
      if (cause.row == i) row["remedy"] = cause.text;
    }
    rows.push_back(std::move(row));
  }
  RunJson others = RunJson::object();
  for (const WhatIf& one : what_ifs(times)) others[one.name] = one.seconds;
  return {{"wall_s", times.wall_s},
          {"attempts", times.attempts},
          {"goodput", times.goodput()},
          {"rows", rows},
          {"what_if", others}};
}

std::string ledger_text(const RunRecord& run) {
  const observe::RunTimes times = times_of(run);
  if (times.wall_s <= 0) return "";
  std::string text = observe::times_text(times);
  for (const observe::SlowCause& cause : observe::slow_causes(times, costs_of(run))) {
    text += fmt::format("  slow         {}\n", cause.text);
  }
  for (const WhatIf& one : what_ifs(times)) {
    const double saved = times.wall_s - one.seconds;
    if (saved < times.wall_s / 100) continue;  // the change would save too little
    text += fmt::format("  what if      {}: {}, {:.0f} % less\n", one.label,
                        observe::format_duration(one.seconds), 100 * saved / times.wall_s);
  }
  return text;
}

}  // namespace scaletrain::launcher
