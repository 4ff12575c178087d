#include "launcher/commands/runs/report_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "launcher/commands/runs/report_pictures.h"
#include "launcher/commands/runs/report_predictions.h"
#include "launcher/runs/recipe_keys.h"
#include "launcher/runs/run_devices.h"
#include "launcher/runs/run_ledger.h"
#include "launcher/runs/run_results.h"
#include "lib/core/clock.h"
#include "lib/core/disk/disk.h"
#include "lib/core/version.h"

namespace scaletrain::launcher {
namespace {

namespace fs = std::filesystem;

constexpr std::array kTrainFields{"attempt",       "step",         "epoch",        "samples",
                                  "time",          "loss",         "lr",           "grad_norm",
                                  "samples_per_s", "memory_bytes", "tflops_per_s", "mfu"};
constexpr std::int64_t kMaxSampleBytes = 4 << 20;

// Returns a list for each field, with null for records that lack it.
RunJson train_columns(const RunRecord& run) {
  RunJson columns = RunJson::object();
  for (const char* const name : kTrainFields) {
    RunJson column = RunJson::array();
    for (const auto& [step, record] : run.trained) {
      const auto found = record.find(name);
      column.push_back(found != record.end() && found->is_number() ? *found : RunJson());
    }
    columns[name] = std::move(column);
  }
  return columns;
}

// Curves of the measures that run_results() knows.
RunJson eval_columns(const RunRecord& run, const std::vector<RunValue>& results) {
  RunJson splits = RunJson::object();
  for (const auto& [split, records] : run.evaluated) {
    for (const RunValue& result : results) {
      if (!result.name.starts_with(split + "_")) continue;
      const std::string measure = result.name.substr(split.size() + 1);
      RunJson steps = RunJson::array(), values = RunJson::array();
      for (const auto& [step, value] : eval_curve(run, split, measure)) {
        steps.push_back(step);
        values.push_back(value);
      }
      if (steps.empty()) continue;
      splits[split][measure] = {{"label", result.label}, {"step", steps}, {"value", values}};
    }
  }
  return splits;
}

RunJson results_of(const std::vector<RunValue>& results) {
  RunJson list = RunJson::array();
  for (const RunValue& one : results) {
    list.push_back({{"name", one.name},
                    {"label", one.label},
                    {"value", one.value},
                    {"text", value_text(one.name, one.value)}});
    if (one.step) list.back()["step"] = *one.step;
  }
  return list;
}

// The rows of the time ledger that took time.
RunJson time_parts(const RunRecord& run) {
  RunJson parts = RunJson::array();
  const RunJson ledger = ledger_json(run);
  if (ledger.is_null()) return parts;
  for (const RunJson& row : ledger["rows"]) {
    if (row["seconds"] <= 0) continue;
    parts.push_back({{"name", row["label"]}, {"seconds", row["seconds"]}});
  }
  return parts;
}

// Returns the descriptive fields of a record: "rank 2, phase data".
std::string details_of(const RunJson& record) {
  static const std::set<std::string> left_out{"event", "time", "attempt", "agent"};
  std::string text;
  for (const auto& field : record.items()) {
    if (left_out.contains(field.key()) || field.value().is_null() || field.value() == "") continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", field.key(), key_text(field.value()));
  }
  return text;
}

RunJson event_of(double time, std::string event, std::string text) {
  return {{"time", time}, {"event", std::move(event)}, {"text", std::move(text)}};
}

// Returns starts, failures and other journal entries in order of time.
RunJson events_of(const RunRecord& run) {
  std::vector<RunJson> events;
  if (run.journal.empty()) {
    for (const auto& [attempt, span] : run.attempts) {
      if (run.attempts.size() > 1) {
        events.push_back(event_of(span.first, "start", fmt::format("attempt {}", attempt)));
      }
    }
  }
  for (const RunJson& record : run.journal) {
    events.push_back(event_of(number_of(record, "time").value_or(0), record.value("event", ""),
                              details_of(record)));
  }
  for (const RunJson& record : run.others) {
    const std::string event = record.value("event", "");
    static const std::set<std::string> counted{"checkpoint", "mirror", "replica", "ledger"};
    if (counted.contains(event)) continue;
    events.push_back(event_of(number_of(record, "time").value_or(0), event, details_of(record)));
  }
  if (run.failure.is_object() && run.journal.empty()) {
    events.push_back(
        event_of(number_of(run.failure, "time").value_or(0), "failure",
                 run.state.state == "failed" ? run.state.why : details_of(run.failure)));
  }
  std::stable_sort(events.begin(), events.end(), [](const RunJson& a, const RunJson& b) {
    return a["time"].get<double>() < b["time"].get<double>();
  });
  return events;
}

RunJson samples_of(const RunRecord& run) {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(run.folder)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("samples") && name.ends_with(".txt")) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  RunJson samples = RunJson::array();
  for (const fs::path& file : files) {
    samples.push_back({{"file", file.filename().string()},
                       {"text", core::read_file(file, kMaxSampleBytes, core::ExitCode::kData)}});
  }
  return samples;
}

RunJson as_run(const RunRecord& run) {
  const std::vector<RunValue> results = run_results(run);
  RunJson environment = run.environment;
  if (environment.is_object()) environment.erase("variables");
  return {{"path", run.shown},
          {"name", run.name},
          {"state", run.state.state},
          {"why", run.state.why},
          {"started", start_time(run).value_or(0)},
          {"results", results_of(results)},
          {"train", train_columns(run)},
          {"eval", eval_columns(run, results)},
          {"time_parts", time_parts(run)},
          {"times", ledger_json(run)},
          {"devices", devices_json(run)},
          {"environment", environment},
          {"events", events_of(run)},
          {"pictures", pictures_of(run)},
          {"predictions", predictions_of(run)},
          {"samples", samples_of(run)}};
}

}  // namespace

RunJson report_data(const std::vector<RunRecord>& runs) {
  std::vector<std::map<std::string, RunJson>> recipes;
  std::set<std::string> all;
  RunJson list = RunJson::array();
  for (const RunRecord& run : runs) {
    recipes.push_back(flat_keys(run.recipe));
    for (const auto& [key, value] : recipes.back()) all.insert(key);
    list.push_back(as_run(run));
  }
  const auto rows_of = [&recipes](const auto& keys) {
    RunJson rows = RunJson::array();
    for (const std::string& key : keys) {
      RunJson values = RunJson::array();
      for (const auto& recipe : recipes) {
        const auto found = recipe.find(key);
        values.push_back(found == recipe.end() ? RunJson() : found->second);
      }
      rows.push_back({{"key", key}, {"values", values}});
    }
    return rows;
  };
  return {{"version", core::version()},
          {"generated", core::unix_time()},
          {"runs", list},
          {"keys", rows_of(all)},
          {"differences", rows_of(differing_keys(recipes))}};
}

}  // namespace scaletrain::launcher
