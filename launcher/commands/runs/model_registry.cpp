#include "launcher/commands/runs/model_registry.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "launcher/runs/run_results.h"
#include "lib/core/clock.h"
#include "lib/core/descriptor.h"
#include "lib/core/disk/disk.h"
#include "lib/core/error.h"
#include "lib/core/text/hash.h"
#include "lib/core/text/json_text.h"
#include "lib/format/checkpoint/checkpoint_folder.h"

namespace scaletrain::launcher {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMaxRegistryBytes = 64 << 20;
constexpr const char* kProduction = "production";
constexpr const char* kArchived = "archived";

// Held while a model's file is read, changed and replaced.
core::Descriptor lock_registry(const fs::path& folder) {
  core::system_disk().make_folders(folder);
  const fs::path file = folder / ".lock";
  core::Descriptor lock(open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  int result = -1;
  if (lock) {
    do {
      result = flock(lock.get(), LOCK_EX);
    } while (result != 0 && errno == EINTR);
  }
  if (result != 0) {
    throw core::StorageError(file.string(),
                             fmt::format("cannot be locked: {}", std::strerror(errno)),
                             "use --registry with a folder that can be written");
  }
  return lock;
}

void require_stage(const std::string& stage) {
  constexpr std::array kStages{"none", "staging", kProduction, kArchived};
  if (std::find(kStages.begin(), kStages.end(), stage) != kStages.end()) return;
  throw core::UsageError("stage", fmt::format("\"{}\" is not a stage", stage),
                         "use one of: staging, production, archived, none");
}

fs::path checkpoint_of(const std::string& path) {
  const fs::path best = fs::path(path) / "checkpoints" / "best";
  std::error_code absent;
  return format::checkpoint_at(fs::exists(best, absent) ? best : fs::path(path));
}

std::string digest_of_file(const fs::path& file) {
  return core::Sha256()
      .update(core::read_file(file, kMaxRegistryBytes, core::ExitCode::kData))
      .hex();
}

// Returns the run that wrote the checkpoint RUN/checkpoints/step-N; nullopt if it is elsewhere.
std::optional<fs::path> run_of(const fs::path& checkpoint) {
  const fs::path run = fs::absolute(checkpoint).parent_path().parent_path();
  return is_run(run) ? std::optional(run) : std::nullopt;
}

void add_lineage(const fs::path& run_folder, RunJson& version) {
  const RunRecord run = read_run(run_folder, run_folder.string());
  version["run"] = run_folder.string();
  version["recipe_digest"] = digest_of_file(run_folder / "recipe.json");
  for (const auto& [set, card] : run.cards) {
    version["data_cards"][set] = digest_of_file(run_folder / "cards" / (set + ".json"));
  }
  if (run.environment.is_object()) {
    version["git_commit"] = run.environment.value("git_commit", RunJson());
  }
  for (const RunValue& value : run_results(run)) version["results"][value.name] = value.value;
}

RunJson version_of(const std::string& path, const std::string& note) {
  const fs::path checkpoint = fs::canonical(checkpoint_of(path));
  const format::Manifest manifest = format::check_checkpoint(checkpoint);
  RunJson version{{"version", 0},
                  {"added", core::unix_time()},
                  {"stage", "none"},
                  {"checkpoint", checkpoint.string()},
                  {"step", manifest.step},
                  {"model_digest", format::model_digest(checkpoint)},
                  {"manifest_digest", digest_of_file(checkpoint / "manifest.json")},
                  {"run", nullptr},
                  {"recipe_digest", nullptr},
                  {"git_commit", nullptr},
                  {"data_cards", RunJson::object()},
                  {"results", RunJson::object()},
                  {"note", note}};
  if (const std::optional<fs::path> run = run_of(checkpoint)) add_lineage(*run, version);
  return version;
}

RunJson& find_version(RunJson& model, int number) {
  for (RunJson& version : model["versions"]) {
    if (version.value("version", 0) == number) return version;
  }
  throw core::UsageError(model["name"].get<std::string>(), fmt::format("has no version {}", number),
                         fmt::format("use one of 1 to {}", model["versions"].size()));
}

void record_move(RunJson& model, const char* action, RunJson& version, const std::string& to) {
  model["history"].push_back({{"time", core::unix_time()},
                              {"action", action},
                              {"version", version["version"]},
                              {"from", version["stage"]},
                              {"to", to}});
  version["stage"] = to;
}

// One version is in production at a time.
void move_to(RunJson& model, const char* action, int number, const std::string& stage) {
  RunJson& moved = find_version(model, number);
  if (stage == kProduction) {
    for (RunJson& other : model["versions"]) {
      if (other["stage"] != kProduction || other["version"] == number) continue;
      record_move(model, action, other, kArchived);
    }
  }
  if (moved["stage"] != stage) record_move(model, action, moved, stage);
}

// Versions in production, oldest first, as promotions and rollbacks have left them.
std::vector<int> production_stack(const RunJson& model) {
  std::vector<int> stack;
  for (const RunJson& change : model["history"]) {
    const int version = change.value("version", 0);
    const std::string to = change.value("to", "");
    const bool is_rollback = change.value("action", "") == "rollback";
    if (is_rollback && to != kProduction && !stack.empty() && stack.back() == version) {
      stack.pop_back();
    } else if (!is_rollback && to == kProduction) {
      stack.push_back(version);
    }
  }
  return stack;
}

}  // namespace

fs::path ModelRegistry::file_of(const std::string& name) const {
  const bool is_plain =
      !name.empty() && name.front() != '.' &&
      std::all_of(name.begin(), name.end(), [](unsigned char letter) {
        return std::isalnum(letter) != 0 || letter == '-' || letter == '_' || letter == '.';
      });
  if (!is_plain) {
    throw core::UsageError("NAME", fmt::format("\"{}\" is not a model name", name),
                           "use letters, digits, \"-\", \"_\" and \".\"");
  }
  return folder_ / (name + ".json");
}

void ModelRegistry::write(const RunJson& model) const {
  core::write_durably(core::system_disk(), file_of(model["name"].get<std::string>()),
                      core::json_text(model, 1) + "\n");
}

RunJson ModelRegistry::add(const std::string& name, const std::string& path,
                           const std::string& stage, const std::string& note) const {
  require_stage(stage);
  const fs::path file = file_of(name);
  RunJson version = version_of(path, note);
  const core::Descriptor lock = lock_registry(folder_);
  std::error_code absent;
  RunJson changed{{"format_version", 1},
                  {"name", name},
                  {"versions", RunJson::array()},
                  {"history", RunJson::array()}};
  if (fs::exists(file, absent)) changed = model(name);
  const int number = static_cast<int>(changed["versions"].size()) + 1;
  version["version"] = number;
  changed["versions"].push_back(version);
  changed["history"].push_back({{"time", core::unix_time()},
                                {"action", "add"},
                                {"version", number},
                                {"from", nullptr},
                                {"to", "none"}});
  if (stage != "none") move_to(changed, "promote", number, stage);
  write(changed);
  return find_version(changed, number);
}

std::vector<std::string> ModelRegistry::names() const {
  std::vector<std::string> names;
  std::error_code absent;
  for (const auto& entry : fs::directory_iterator(folder_, absent)) {
    const std::string name = entry.path().filename().string();
    if (entry.path().extension() == ".json" && !name.starts_with('.')) {
      names.push_back(entry.path().stem().string());
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

RunJson ModelRegistry::model(const std::string& name) const {
  const fs::path file = file_of(name);
  std::error_code absent;
  if (!fs::exists(file, absent)) {
    throw core::UsageError(file.string(), fmt::format("there is no model \"{}\"", name),
                           "scaletrain models ls lists them; add one with: scaletrain models add");
  }
  RunJson model = RunJson::parse(core::read_file(file, kMaxRegistryBytes, core::ExitCode::kData),
                                 nullptr, false);
  const bool is_whole = model.is_object() && model.value("name", "") == name &&
                        model.value("versions", RunJson()).is_array() &&
                        model.value("history", RunJson()).is_array();
  if (!is_whole) throw core::DataError(file.string(), "is damaged", "restore it from a copy");
  if (model.value("format_version", 0) != 1) {
    throw core::DataError(file.string(), "has a newer format", "use a newer scaletrain");
  }
  return model;
}

RunJson ModelRegistry::version(const std::string& name, int number) const {
  RunJson found = model(name);
  return find_version(found, number);
}

void ModelRegistry::promote(const std::string& name, int number, const std::string& stage) const {
  require_stage(stage);
  file_of(name);
  const core::Descriptor lock = lock_registry(folder_);
  RunJson changed = model(name);
  move_to(changed, "promote", number, stage);
  write(changed);
}

int ModelRegistry::roll_back(const std::string& name) const {
  file_of(name);
  const core::Descriptor lock = lock_registry(folder_);
  RunJson changed = model(name);
  const std::vector<int> stack = production_stack(changed);
  if (stack.size() < 2) {
    throw core::UsageError(name, "no version was in production before the current one",
                           "choose one with: scaletrain models promote NAME VERSION");
  }
  const int previous = stack[stack.size() - 2];
  move_to(changed, "rollback", previous, kProduction);
  write(changed);
  return previous;
}

}  // namespace scaletrain::launcher
