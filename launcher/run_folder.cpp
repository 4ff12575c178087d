#include "launcher/run_folder.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "lib/core/disk.h"
#include "lib/core/error.h"
#include "lib/format/checkpoint_folder.h"

namespace scaletrain::launcher {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMaxJsonBytes = 1 << 20;
constexpr std::string_view kAttempt = "attempt_";

void collect_missing(const recipe::Source& source, std::vector<std::string>& missing) {
  for (const std::string& shard : source.shards) {
    if (!fs::is_regular_file(shard) || access(shard.c_str(), R_OK) != 0) missing.push_back(shard);
  }
  if (!source.folder.empty() && !fs::is_directory(source.folder)) missing.push_back(source.folder);
  for (const recipe::Source& one : source.sources) collect_missing(one, missing);
}

}  // namespace

void check_sources(const recipe::Data& data) {
  std::vector<std::string> missing;
  collect_missing(data.train, missing);
  if (data.val) collect_missing(*data.val, missing);
  if (data.test) collect_missing(*data.test, missing);
  if (missing.empty()) return;
  const std::string others =
      missing.size() > 1 ? fmt::format(" (and {} more)", missing.size() - 1) : "";
  throw core::DataError(missing.front(), "cannot be read or does not exist" + others,
                        "make the data first, or correct the paths under /data");
}

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
    int number = 0;
    if (!name.starts_with(kAttempt)) continue;
    const char* const end = name.data() + name.size();
    const auto [stop, error] = std::from_chars(name.data() + kAttempt.size(), end, number);
    if (error == std::errc() && stop == end) highest = std::max(highest, number);
  }
  if (highest < 0) return 0;
  const fs::path newest = output / "logs" / fmt::format("{}{}", kAttempt, highest);
  return fs::exists(newest / std::to_string(first_rank)) ? highest + 1 : highest;
}

}  // namespace scaletrain::launcher
