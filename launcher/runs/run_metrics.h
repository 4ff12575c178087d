// The metrics of a run, read from its metrics.jsonl, and the JSON files beside it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace scaletrain::launcher {

using RunJson = nlohmann::ordered_json;

// Values of one field at steps, in the order of the steps.
using RunCurve = std::vector<std::pair<std::int64_t, double>>;

// Records of metrics.jsonl. If several attempts logged a step, the highest attempt counts.
struct RunMetrics {
  std::map<std::int64_t, RunJson> trained;                           // by step
  std::map<std::string, std::map<std::int64_t, RunJson>> evaluated;  // by split, then by step
  std::vector<RunJson> others;                                       // checkpoints, stragglers, ...
  std::map<int, std::pair<double, double>> attempts;  // first and last time, Unix seconds
};

// Reads all records; a line that does not parse is skipped. Empty if there is no file.
RunMetrics read_metrics(const std::filesystem::path& run);

// Reads the "train" records at the end of a possibly long file: those of the newest attempt there.
std::vector<RunJson> last_train_records(const std::filesystem::path& run);

// Training curve of a field: "loss", "lr", "grad_norm".
RunCurve train_curve(const RunMetrics& metrics, const std::string& name);
// Curve of a measure of a split: "val" and "top1".
RunCurve eval_curve(const RunMetrics& metrics, const std::string& split,
                    const std::string& measure);

// Seconds of all attempts; a measure of what a run cost, not counting the time between attempts.
double trained_seconds(const RunMetrics& metrics);

// Returns the field `name` of `record`; nullopt if it is absent or no finite number.
std::optional<double> number_of(const RunJson& record, const std::string& name);

// Returns the field `name` of `record`; "" if it is absent or no string.
std::string string_of(const RunJson& record, const std::string& name);

// Returns the object in a file of a run; null if the file is missing or damaged.
RunJson read_object(const std::filesystem::path& file);

// Calls `use` with each line of the file that is an object. A last line may be incomplete.
void for_each_record(const std::filesystem::path& file, const std::function<void(RunJson)>& use);

}  // namespace scaletrain::launcher
