#include "launcher/runs/run_metrics.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <istream>
#include <system_error>

#include "lib/core/disk/disk.h"
#include "lib/core/error.h"

namespace scaletrain::launcher {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMetricsFile = "metrics.jsonl";
constexpr std::int64_t kMaxObjectBytes = 64 << 20;
constexpr std::streamoff kMetricsTailBytes = 256 << 10;

// Skips lines that do not parse: the first one may be truncated, and the last one incomplete.
void for_each_object(std::istream& stream, const std::function<void(RunJson)>& use) {
  for (std::string line; std::getline(stream, line);) {
    RunJson record = RunJson::parse(line, nullptr, false);
    if (record.is_object()) use(std::move(record));
  }
}

int attempt_number(const RunJson& record) {
  return static_cast<int>(number_of(record, "attempt").value_or(0));
}

// Keeps the record of the highest attempt; of equal ones the later line.
void keep_latest(std::map<std::int64_t, RunJson>& records, std::int64_t step, RunJson record) {
  const auto found = records.find(step);
  if (found == records.end()) {
    records.emplace(step, std::move(record));
  } else if (attempt_number(record) >= attempt_number(found->second)) {
    found->second = std::move(record);
  }
}

void take_record(RunMetrics& metrics, RunJson record) {
  if (const std::optional<double> time = number_of(record, "time")) {
    const auto [span, is_new] = metrics.attempts.try_emplace(attempt_number(record), *time, *time);
    if (!is_new) span->second.second = std::max(span->second.second, *time);
  }
  const std::optional<double> step = number_of(record, "step");
  const std::string event = string_of(record, "event");
  if (step && event == "train") {
    keep_latest(metrics.trained, static_cast<std::int64_t>(*step), std::move(record));
  } else if (step && event == "eval") {
    const std::string split = string_of(record, "split");
    keep_latest(metrics.evaluated[split], static_cast<std::int64_t>(*step), std::move(record));
  } else if (!event.empty()) {
    metrics.others.push_back(std::move(record));
  }
}

RunCurve curve_of(const std::map<std::int64_t, RunJson>& records, const std::string& name) {
  RunCurve curve;
  for (const auto& [step, record] : records) {
    if (const std::optional<double> value = number_of(record, name)) {
      curve.emplace_back(step, *value);
    }
  }
  return curve;
}

}  // namespace

RunMetrics read_metrics(const fs::path& run) {
  RunMetrics metrics;
  for_each_record(run / kMetricsFile,
                  [&metrics](RunJson record) { take_record(metrics, std::move(record)); });
  return metrics;
}

std::vector<RunJson> last_train_records(const fs::path& run) {
  std::ifstream file(run / kMetricsFile, std::ios::binary | std::ios::ate);
  if (!file) return {};
  const std::streamoff bytes = file.tellg();
  file.seekg(std::max<std::streamoff>(0, bytes - kMetricsTailBytes));
  std::vector<RunJson> records;
  for_each_object(file, [&records](RunJson record) {
    if (string_of(record, "event") != "train") return;
    if (!records.empty() && attempt_number(record) != attempt_number(records.back())) {
      records.clear();
    }
    records.push_back(std::move(record));
  });
  return records;
}

RunCurve train_curve(const RunMetrics& metrics, const std::string& name) {
  return curve_of(metrics.trained, name);
}

RunCurve eval_curve(const RunMetrics& metrics, const std::string& split,
                    const std::string& measure) {
  const auto found = metrics.evaluated.find(split);
  return found == metrics.evaluated.end() ? RunCurve() : curve_of(found->second, measure);
}

double trained_seconds(const RunMetrics& metrics) {
  double seconds = 0;
  for (const auto& [attempt, span] : metrics.attempts) seconds += span.second - span.first;
  return seconds;
}

std::optional<double> number_of(const RunJson& record, const std::string& name) {
  const auto found = record.find(name);
  if (found == record.end() || !found->is_number()) return std::nullopt;
  const auto value = found->get<double>();
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

std::string string_of(const RunJson& record, const std::string& name) {
  const auto found = record.find(name);
  return found != record.end() && found->is_string() ? found->get<std::string>() : "";
}

RunJson read_object(const fs::path& file) {
  std::error_code absent;
  if (!fs::is_regular_file(file, absent)) return nullptr;
  RunJson json = RunJson::parse(core::read_file(file, kMaxObjectBytes, core::ExitCode::kData),
                                nullptr, /*allow_exceptions=*/false, /*ignore_comments=*/true);
  return json.is_object() ? json : nullptr;
}

void for_each_record(const fs::path& file, const std::function<void(RunJson)>& use) {
  std::ifstream stream(file, std::ios::binary);
  for_each_object(stream, use);
}

}  // namespace scaletrain::launcher
