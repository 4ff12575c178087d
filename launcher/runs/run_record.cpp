#include "launcher/runs/run_record.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fstream>
#include <system_error>

#include "lib/core/disk/disk.h"
#include "lib/core/error.h"
#include "lib/core/text/url.h"

namespace scaletrain::launcher {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMaxRecordBytes = 64 << 20;

// The object in a file; null if the file is missing or damaged.
RunJson object_in(const fs::path& file) {
  std::error_code absent;
  if (!fs::is_regular_file(file, absent)) return nullptr;
  RunJson json = RunJson::parse(core::read_file(file, kMaxRecordBytes, core::ExitCode::kData),
                                nullptr, /*allow_exceptions=*/false, /*ignore_comments=*/true);
  return json.is_object() ? json : nullptr;
}

template <class Use>
void for_each_line(const fs::path& file, const Use& use) {
  std::ifstream stream(file, std::ios::binary);
  for (std::string line; std::getline(stream, line);) {
    RunJson record = RunJson::parse(line, nullptr, false);  // the last line may be torn
    if (record.is_object()) use(std::move(record));
  }
}

std::string string_of(const RunJson& record, const char* name) {
  const auto found = record.find(name);
  return found != record.end() && found->is_string() ? found->get<std::string>() : "";
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

void take_record(RunRecord& run, RunJson record) {
  if (const std::optional<double> time = number_of(record, "time")) {
    const auto [span, is_new] = run.attempts.try_emplace(attempt_number(record), *time, *time);
    if (!is_new) span->second.second = std::max(span->second.second, *time);
  }
  const std::optional<double> step = number_of(record, "step");
  const std::string event = string_of(record, "event");
  if (step && event == "train") {
    keep_latest(run.trained, static_cast<std::int64_t>(*step), std::move(record));
  } else if (step && event == "eval") {
    const std::string split = string_of(record, "split");
    keep_latest(run.evaluated[split], static_cast<std::int64_t>(*step), std::move(record));
  } else if (!event.empty()) {
    run.others.push_back(std::move(record));
  }
}

// Adds nodes that joined and were lost, from the journals of the launchers of several nodes, to a
// run's journal.
void read_agents(const fs::path& folder, RunRecord& run) {
  static const std::map<std::string, std::string> event_names{
      {"join", "node_joined"}, {"lose", "node_lost"}, {"refuse", "node_refused"}};
  std::error_code absent;
  for (const fs::directory_entry& file : fs::directory_iterator(folder / "logs/agents", absent)) {
    for_each_line(file.path(), [&run](RunJson record) {
      const auto found = event_names.find(string_of(record, "event"));
      if (found == event_names.end()) return;
      record["event"] = found->second;
      run.journal.push_back(std::move(record));
    });
  }
}

}  // namespace

bool is_run(const fs::path& folder) {
  std::error_code absent;
  if (!fs::is_regular_file(folder / "recipe.json", absent)) return false;
  constexpr std::array kSigns{"metrics.jsonl", "logs", "checkpoints", "finished.json"};
  return std::any_of(kSigns.begin(), kSigns.end(),
                     [&](const char* name) { return fs::exists(folder / name, absent); });
}

RunRecord read_run(const fs::path& folder, const std::string& shown) {
  RunRecord run;
  run.shown = shown;
  run.folder = folder;
  run.recipe = object_in(folder / "recipe.json");
  if (run.recipe.is_null()) {
    throw core::UsageError(core::shown_path(shown), "holds no run",
                           "name the output folder of a recipe");
  }
  run.name = string_of(run.recipe, "name");
  run.state = run_state(folder);
  run.environment = object_in(folder / "environment.json");
  run.failure = object_in(folder / "failure.json");
  for (const char* set : {"train", "val", "test"}) {
    RunJson card = object_in(folder / "cards" / (std::string(set) + ".json"));
    if (!card.is_null()) run.cards.emplace(set, std::move(card));
  }
  for_each_line(folder / "metrics.jsonl",
                [&run](RunJson record) { take_record(run, std::move(record)); });
  for_each_line(folder / "journal.jsonl",
                [&run](RunJson record) { run.journal.push_back(std::move(record)); });
  read_agents(folder, run);
  return run;
}

std::optional<double> number_of(const RunJson& record, const std::string& name) {
  const auto found = record.find(name);
  if (found == record.end() || !found->is_number()) return std::nullopt;
  const auto value = found->get<double>();
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

std::optional<double> number_in_text(std::string_view text) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end || !std::isfinite(number)) return std::nullopt;
  return number;
}

RunCurve train_curve(const RunRecord& run, const std::string& name) {
  RunCurve curve;
  for (const auto& [step, record] : run.trained) {
    if (const std::optional<double> value = number_of(record, name))
      curve.emplace_back(step, *value);
  }
  return curve;
}

RunCurve eval_curve(const RunRecord& run, const std::string& split, const std::string& measure) {
  RunCurve curve;
  const auto found = run.evaluated.find(split);
  if (found == run.evaluated.end()) return curve;
  for (const auto& [step, record] : found->second) {
    if (const std::optional<double> value = number_of(record, measure)) {
      curve.emplace_back(step, *value);
    }
  }
  return curve;
}

}  // namespace scaletrain::launcher
