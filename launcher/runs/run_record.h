// The folder of a run as one value: recipe, metrics of all attempts, environment, results, failures
// and journal. `report`, `compare` and `runs` read runs through it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "launcher/runs/run_state.h"

namespace scaletrain::launcher {

using RunJson = nlohmann::ordered_json;

// Values of one field at steps, in the order of the steps.
using RunCurve = std::vector<std::pair<std::int64_t, double>>;

struct RunRecord {
  std::string shown;             // path as typed
  std::filesystem::path folder;  // a local folder, also of a run in an object store
  std::string name;              // name in the recipe
  RunState state;
  RunJson recipe;
  RunJson environment;  // null: the file is missing or damaged, as for `failure`
  RunJson failure;
  std::map<std::string, RunJson> cards;  // data cards by set: "train", "val", "test"
  std::vector<RunJson> journal;          // lines of journal.jsonl; node_joined, node_lost

  // Records of metrics.jsonl. Of a repeated step the highest attempt counts.
  std::map<std::int64_t, RunJson> trained;                           // by step
  std::map<std::string, std::map<std::int64_t, RunJson>> evaluated;  // by split, then by step
  std::vector<RunJson> others;                                       // checkpoints, stragglers, ...
  std::map<int, std::pair<double, double>> attempts;  // first and last time, Unix seconds
};

// True if the folder holds a run: a recipe beside metrics, logs or checkpoints.
bool is_run(const std::filesystem::path& folder);

// Reads the files of a run. A line of metrics.jsonl that does not parse is skipped. Throws
// core::UsageError if the folder holds no run.
RunRecord read_run(const std::filesystem::path& folder, const std::string& shown);

// Returns the field `name` of `record`; nullopt if it is absent or no finite number.
std::optional<double> number_of(const RunJson& record, const std::string& name);

// Parses the complete `text` as a finite number.
std::optional<double> number_in_text(std::string_view text);

// Training curve of a field: "loss", "lr", "grad_norm".
RunCurve train_curve(const RunRecord& run, const std::string& name);
// Curve of a measure of a split: "val" and "top1".
RunCurve eval_curve(const RunRecord& run, const std::string& split, const std::string& measure);

}  // namespace scaletrain::launcher
