#include "launcher/plan/score.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "lib/core/descriptor.h"
#include "lib/core/disk/disk.h"
#include "lib/core/error.h"
#include "lib/core/text/json_text.h"
#include "lib/core/text/table.h"

namespace scaletrain::launcher {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using Value = std::optional<ScoredValue> Score::*;

struct ValueName {
  const char* name;
  Value value;
};

constexpr ValueName kValues[] = {{"step_s", &Score::step_s},
                                 {"memory_bytes", &Score::memory_bytes},
                                 {"seconds", &Score::seconds}};

std::optional<ScoredValue> value_of(const Json& json, const char* name) {
  const auto found = json.find(name);
  if (found == json.end() || !found->is_object()) return std::nullopt;
  const auto number = [&](const char* key) {
    const auto value = found->find(key);
    return value != found->end() && value->is_number() ? value->get<double>() : 0.0;
  };
  const ScoredValue value{.predicted = number("predicted"), .measured = number("measured")};
  if (!(value.measured > 0) || !(value.predicted > 0)) return std::nullopt;
  return value;
}

std::string text_at(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}

// Returns the smallest of the sorted `values` that is at least as large as a share `share` of them.
double quantile(const std::vector<double>& values, double share) {
  const auto place =
      static_cast<std::size_t>(std::ceil(share * static_cast<double>(values.size())));
  return values[std::clamp<std::size_t>(place, 1, values.size()) - 1];
}

std::string percent(double share) { return fmt::format("{:+.1f} %", 100 * share); }

}  // namespace

Json score_json(const Score& score) {
  Json json{{"run", score.run}, {"device", score.device}};
  for (const ValueName& one : kValues) {
    const std::optional<ScoredValue>& value = score.*one.value;
    if (!value) continue;
    json[one.name] = {
        {"predicted", value->predicted}, {"measured", value->measured}, {"error", value->error()}};
  }
  return json;
}

fs::path scores_file() {
  const char* const state = std::getenv("XDG_STATE_HOME");
  if (state != nullptr && *state == '/') return fs::path(state) / "scaletrain/plan_scores.jsonl";
  const char* const home = std::getenv("HOME");
  if (home == nullptr || *home != '/') return {};
  return fs::path(home) / ".local/state/scaletrain/plan_scores.jsonl";
}

void append_private_line(const fs::path& file, const std::string& line) {
  constexpr mode_t kOwner = 0600;
  core::system_disk().make_folders(file.parent_path());
  const core::Descriptor fd(
      ::open(file.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, kOwner));
  const std::string bytes = line + "\n";
  const bool is_written =
      fd.get() >= 0 && ::write(fd.get(), bytes.data(), bytes.size()) == std::ssize(bytes);
  if (is_written) return;
  throw core::StorageError(file.string(),
                           fmt::format("cannot be written: {}", core::errno_text(errno)),
                           "check the folder's permissions and free space");
}

void append_score(const fs::path& file, const Score& score) {
  append_private_line(file, core::json_text(score_json(score)));
}

std::vector<Score> read_scores(const fs::path& file) {
  std::ifstream stream(file);
  std::vector<Score> scores;
  for (std::string line; std::getline(stream, line);) {
    const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object()) continue;
    Score score{.run = text_at(json, "run"), .device = text_at(json, "device")};
    for (const ValueName& one : kValues) score.*one.value = value_of(json, one.name);
    std::erase_if(scores, [&](const Score& other) {
      return other.run == score.run && other.device == score.device;
    });
    scores.push_back(std::move(score));
  }
  return scores;
}

std::optional<ErrorSpread> spread_of(std::vector<double> errors) {
  if (errors.empty()) return std::nullopt;
  constexpr double kHalf = 0.5, kMost = 0.9;
  std::sort(errors.begin(), errors.end());
  ErrorSpread spread{.count = errors.size(), .median = quantile(errors, kHalf)};
  for (double& error : errors) error = std::abs(error);
  std::sort(errors.begin(), errors.end());
  spread.half = quantile(errors, kHalf);
  spread.most = quantile(errors, kMost);
  return spread;
}

std::string scores_text(const std::vector<Score>& scores) {
  std::map<std::pair<std::string, std::string>, std::vector<double>> errors;
  for (const Score& score : scores) {
    for (const ValueName& one : kValues) {
      const std::optional<ScoredValue>& value = score.*one.value;
      if (value) errors[{score.device, one.name}].push_back(value->error());
    }
  }
  std::vector<std::vector<std::string>> lines{
      {"device", "value", "runs", "median error", "half within", "90 % within"}};
  for (const auto& [key, all] : errors) {
    const ErrorSpread spread = *spread_of(all);
    lines.push_back({key.first, key.second, std::to_string(spread.count), percent(spread.median),
                     fmt::format("{:.1f} %", 100 * spread.half),
                     fmt::format("{:.1f} %", 100 * spread.most)});
  }
  return core::text_table(lines);
}

}  // namespace scaletrain::launcher
