#include "launcher/runs/run_record.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <system_error>
#include <utility>

#include "lib/core/error.h"
#include "lib/core/text/url.h"

namespace scaletrain::launcher {
namespace {

namespace fs = std::filesystem;

// Adds nodes that joined and were lost, from the journals of the launchers of several nodes, to a
// run's journal.
void read_agents(const fs::path& folder, RunRecord& run) {
  static const std::map<std::string, std::string> event_names{
      {"join", "node_joined"}, {"lose", "node_lost"}, {"refuse", "node_refused"}};
  std::error_code absent;
  for (const fs::directory_entry& file : fs::directory_iterator(folder / "logs/agents", absent)) {
    for_each_record(file.path(), [&run](RunJson record) {
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
  run.recipe = read_object(folder / "recipe.json");
  if (run.recipe.is_null()) {
    throw core::UsageError(core::shown_path(shown), "holds no run",
                           "name the output folder of a recipe");
  }
  run.name = string_of(run.recipe, "name");
  run.state = run_state(folder);
  run.environment = read_object(folder / "environment.json");
  run.failure = read_object(folder / "failure.json");
  for (const char* set : {"train", "val", "test"}) {
    RunJson card = read_object(folder / "cards" / (std::string(set) + ".json"));
    if (!card.is_null()) run.cards.emplace(set, std::move(card));
  }
  static_cast<RunMetrics&>(run) = read_metrics(folder);
  for_each_record(folder / "journal.jsonl",
                  [&run](RunJson record) { run.journal.push_back(std::move(record)); });
  read_agents(folder, run);
  return run;
}

std::optional<double> number_in_text(std::string_view text) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end || !std::isfinite(number)) return std::nullopt;
  return number;
}

}  // namespace scaletrain::launcher
