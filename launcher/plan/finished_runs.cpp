#include "launcher/plan/finished_runs.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/text/json_text.h"

namespace scaletrain::launcher {
namespace {

namespace fs = std::filesystem;
using RunLine = nlohmann::ordered_json;

}  // namespace

fs::path finished_runs_file() {
  const char* const text = std::getenv("SCALETRAIN_PLAN_SCORES");
  if (text != nullptr && std::string_view(text) == "off") return {};
  const fs::path scores = scores_file();
  return scores.empty() ? fs::path() : scores.parent_path() / "finished_runs.jsonl";
}

void note_finished_run(const fs::path& file, const fs::path& run) {
  if (file.empty()) return;
  try {
    const std::string folder = fs::absolute(run).lexically_normal().string();
    append_private_line(file, core::json_text(RunLine{{"run", folder}}));
  } catch (const core::Error& error) {
    core::warn("{}: {}; `scaletrain plan scores` does not know this run", error.place(),
               error.found());
  }
}

std::vector<std::string> unscored_runs(const fs::path& file, const std::vector<Score>& scores,
                                       std::size_t most) {
  std::set<std::string> known;
  for (const Score& score : scores) known.insert(score.run);
  std::vector<std::string> runs;
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    const RunLine json = RunLine::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object() || !json.contains("run") || !json["run"].is_string()) continue;
    const auto run = json["run"].get<std::string>();
    std::error_code failed;
    if (fs::is_directory(run, failed) && known.insert(run).second) runs.push_back(run);
  }
  if (runs.size() > most) runs.erase(runs.begin(), runs.end() - static_cast<std::ptrdiff_t>(most));
  return runs;
}

}  // namespace scaletrain::launcher
