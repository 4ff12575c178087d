#include "launcher/run_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "lib/core/disk.h"
#include "lib/core/error.h"
#include "lib/core/text.h"
#include "lib/format/checkpoint_folder.h"

namespace scaletrain::launcher {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMaxJsonBytes = 1 << 20;
constexpr std::string_view kAttempt = "attempt_";

}  // namespace

bool holds_run(const fs::path& output) {
  return fs::exists(output / "finished.json") ||
         (fs::exists(output / "checkpoints") &&
          !format::list_checkpoints(output / "checkpoints").empty());
}

std::optional<std::string> finished_run(const fs::path& output) {
  const fs::path file = output / "finished.json";
  if (!fs::exists(file)) return std::nullopt;
  const nlohmann::json json = nlohmann::json::parse(
      core::read_file(file, kMaxJsonBytes, core::ExitCode::kData), nullptr, false);
  if (!json.is_object()) {
    throw core::CheckpointError(file.string(), "is damaged",
                                "remove it to let the run continue from its newest checkpoint");
  }
  std::string text = fmt::format("step {}, epoch {}", json.value("step", std::int64_t{0}),
                                 json.value("epoch", std::int64_t{0}));
  if (json.contains("test_top1") && json["test_top1"].is_number()) {
    text += fmt::format(", test top-1 {:.4f}", json["test_top1"].get<double>());
  }
  return text;
}

int next_attempt(const fs::path& output, int first_rank) {
  int highest = -1;
  std::error_code absent;
  for (const fs::directory_entry& entry : fs::directory_iterator(output / "logs", absent)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with(kAttempt)) continue;
    highest = std::max(highest, core::parse_number<int>(name.substr(kAttempt.size())).value_or(-1));
  }
  if (highest < 0) return 0;
  const fs::path newest = output / "logs" / fmt::format("{}{}", kAttempt, highest);
  return fs::exists(newest / std::to_string(first_rank)) ? highest + 1 : highest;
}

}  // namespace scaletrain::launcher
