#include "launcher/commands/checkpoint_keep.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "launcher/jobs/checks/run_folder.h"
#include "launcher/platform/become.h"
#include "lib/core/disk/disk.h"
#include "lib/core/disk/lease.h"
#include "lib/core/error.h"
#include "lib/core/printable.h"
#include "lib/core/process/programs.h"
#include "lib/core/text/json_text.h"
#include "lib/core/text/table.h"
#include "lib/core/text/url.h"
#include "lib/format/checkpoint/checkpoint_folder.h"
#include "lib/format/checkpoint/checkpoint_folder_links.h"
#include "lib/format/checkpoint/checkpoint_folder_remove.h"
#include "lib/format/checkpoint/retention.h"
#include "lib/format/checkpoint/run_requests.h"
#include "lib/recipe/load.h"

namespace scaletrain::launcher {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kNoRun = "there is no run with checkpoints in it";
constexpr const char* kRunRemedy = "name a run's folder";

struct KeepArguments {
  std::string run;
  bool as_json = false, dry_run = false;
  std::optional<std::int64_t> last;
  std::optional<double> every_steps, every_epochs, hours;
};

// State of a run's checkpoints, as far as they can be read.
struct Kept {
  fs::path folder;
  format::Survey survey;
  std::map<std::int64_t, double> hours;
  std::map<std::int64_t, std::string> why;  // reasons of the kept ones
};

// Retention rules of the run's recipe, overridden by the command line.
format::Retention retention(const fs::path& run, const KeepArguments& arguments) {
  const recipe::Checkpoint asked = recipe::load_recipe(run / "recipe.json").checkpoint;
  const bool is_named = arguments.every_steps || arguments.every_epochs;
  const auto every = [&](recipe::Duration::Unit unit, const std::optional<double>& named) {
    return is_named ? named : asked.keep_every_in(unit);
  };
  return {.last = arguments.last.value_or(asked.keep_last),
          .every_steps = every(recipe::Duration::Unit::kSteps, arguments.every_steps),
          .every_epochs = every(recipe::Duration::Unit::kEpochs, arguments.every_epochs),
          .hours = arguments.hours ? arguments.hours : asked.keep_hours};
}

Kept look(const KeepArguments& arguments) {
  const fs::path run = arguments.run;
  Kept kept{.folder = run / "checkpoints", .survey = {}, .hours = {}, .why = {}};
  if (!fs::exists(run / "recipe.json") || !fs::exists(kept.folder)) {
    throw core::CheckpointError(arguments.run, kNoRun, kRunRemedy);
  }
  kept.survey = format::survey_checkpoints(kept.folder);
  kept.hours = format::hours_since_written(kept.folder, kept.survey);
  if (kept.survey.states.empty()) return kept;
  kept.why = format::kept_checkpoints(kept.survey, kept.survey.states.rbegin()->first,
                                      retention(run, arguments), kept.hours);
  return kept;
}

// Returns the size of a checkpoint; 0 if a running job has removed it meanwhile.
std::int64_t bytes_of(const fs::path& checkpoint) {
  std::int64_t bytes = 0;
  std::error_code unknown;
  if (!fs::exists(checkpoint, unknown)) return 0;
  for (const auto& [name, entry] : format::read_manifest(checkpoint).files) bytes += entry.bytes;
  return bytes;
}

// Bytes freed by deleting `steps`: a file shared by hard links stays until its last checkpoint.
std::int64_t freed_bytes(const fs::path& checkpoints, const std::vector<std::int64_t>& steps) {
  std::map<std::pair<dev_t, ino_t>, nlink_t> names_left;
  std::int64_t bytes = 0;
  for (const std::int64_t step : steps) {
    const fs::path checkpoint = format::checkpoint_path(checkpoints, step);
    std::error_code unknown;
    if (!fs::exists(checkpoint, unknown)) continue;  // a running job has removed it meanwhile
    for (const auto& [name, entry] : format::read_manifest(checkpoint).files) {
      struct stat status = {};
      if (::stat((checkpoint / name).c_str(), &status) != 0) continue;
      nlink_t& left =
          names_left.try_emplace({status.st_dev, status.st_ino}, status.st_nlink).first->second;
      if (--left == 0) bytes += status.st_size;
    }
  }
  return bytes;
}

Json describe(const Kept& kept) {
  Json checkpoints = Json::array();
  for (const auto& [step, state] : kept.survey.states) {
    const fs::path path = format::checkpoint_path(kept.folder, step);
    const auto why = kept.why.find(step);
    checkpoints.push_back(
        {{"path", path.string()},
         {"step", step},
         {"epoch", state.epoch},
         {"samples", state.samples},
         {"bytes", bytes_of(path)},
         {"hours", kept.hours.contains(step) ? Json(kept.hours.at(step)) : Json()},
         {"kept", why == kept.why.end() ? Json() : Json(why->second)}});
  }
  return checkpoints;
}

std::string age_text(const Json& hours) {
  if (hours.is_null()) return "";
  const double age = hours.get<double>();
  if (age < 1) return fmt::format("{:.0f} min", age * 60);
  return age < 48 ? fmt::format("{:.1f} h", age) : fmt::format("{:.1f} d", age / 24);
}

std::string as_text(const Json& checkpoints, const format::Survey& survey) {
  std::vector<std::vector<std::string>> lines{{"step", "epoch", "samples", "MB", "age", "kept as"}};
  for (const Json& one : checkpoints) {
    lines.push_back({fmt::to_string(one["step"].get<std::int64_t>()),
                     fmt::to_string(one["epoch"].get<std::int64_t>()),
                     fmt::to_string(one["samples"].get<std::int64_t>()),
                     fmt::format("{:.1f}", one["bytes"].get<double>() / 1e6),
                     age_text(one["hours"]),
                     one["kept"].is_null() ? "no longer" : one["kept"].get<std::string>()});
  }
  std::string text = core::text_table(lines);
  for (const auto& [step, why] : survey.unread) {
    text += fmt::format("step {} cannot be read, and is kept: {}\n", step, core::printable(why));
  }
  return text;
}

void print(const Json& json) { std::fputs((core::json_text(json, 1) + "\n").c_str(), stdout); }

// Copies in an object store, which is not linked here.
[[noreturn]] void list_copies(const KeepArguments& arguments) {
  std::vector<std::string> words{"mirror", arguments.run};
  if (arguments.as_json) words.emplace_back("--json");
  become(core::program_beside_us("scaletrain-data"), words);
}

void list(const KeepArguments& arguments) {
  if (core::is_url(arguments.run)) list_copies(arguments);
  const Kept kept = look(arguments);
  const Json checkpoints = describe(kept);
  if (!arguments.as_json) {
    std::fputs(as_text(checkpoints, kept.survey).c_str(), stdout);
    return;
  }
  Json unread = Json::array();
  for (const auto& [step, why] : kept.survey.unread) {
    unread.push_back({{"step", step}, {"error", why}});
  }
  print({{"checkpoints", checkpoints}, {"unread", unread}});
}

// Steps of the checkpoints to delete.
std::vector<std::int64_t> left_out(const Kept& kept) {
  std::vector<std::int64_t> steps;
  for (const auto& [step, state] : kept.survey.states) {
    if (!kept.why.contains(step)) steps.push_back(step);
  }
  return steps;
}

// A valid checkpoint must remain: the newest does, since nothing is removed if it is invalid.
std::vector<std::int64_t> remove_left_out(const KeepArguments& arguments) {
  const core::Lease lease(fs::path(arguments.run) / "lease.json", /*attempt=*/0);
  const Kept kept = look(arguments);
  if (left_out(kept).empty()) return {};
  const std::int64_t newest = kept.survey.states.rbegin()->first;
  format::check_checkpoint(format::checkpoint_path(kept.folder, newest));
  core::Disk& disk = core::system_disk();
  core::Housekeeping housekeeping;
  std::vector<std::int64_t> removed = format::retain_checkpoints(
      disk, kept.folder, kept.survey, newest, retention(arguments.run, arguments), housekeeping);
  format::settle_links(disk, kept.folder);
  if (housekeeping.failures() > 0) {
    throw core::StorageError(kept.folder.string(), "some checkpoints could not be removed",
                             "see the warnings; the same command tries again");
  }
  return removed;
}

void prune(const KeepArguments& arguments) {
  const Kept before = look(arguments);
  if (!arguments.dry_run && is_running(arguments.run)) {
    throw core::UsageError(
        arguments.run, "the run is still running, and keeps checkpoints by the rules of its recipe",
        "wait until it ends, or use --dry-run");
  }
  const std::int64_t bytes = freed_bytes(before.folder, left_out(before));
  const std::vector<std::int64_t> removed =
      arguments.dry_run ? left_out(before) : remove_left_out(arguments);
  if (arguments.as_json) {
    return print({{"removed", removed}, {"bytes", bytes}, {"dry_run", arguments.dry_run}});
  }
  for (const std::int64_t step : removed) std::printf("step %lld\n", static_cast<long long>(step));
  std::printf("%zu checkpoints %s, %.1f MB\n", removed.size(),
              arguments.dry_run ? "would be removed" : "were removed",
              static_cast<double>(bytes) / 1e6);
}

void save_now(const KeepArguments& arguments) {
  if (!is_running(arguments.run)) {
    throw core::UsageError(arguments.run, "no run is running in this folder",
                           "name a running run's folder");
  }
  format::make_request(core::system_disk(), arguments.run, format::kSaveRequest);
  std::printf("%s: asked for a checkpoint behind the step that is under way\n",
              core::printable(arguments.run).c_str());
}

CLI::App* add_command(CLI::App& checkpoint, const char* name, const char* help,
                      const std::shared_ptr<KeepArguments>& arguments) {
  CLI::App* const command = checkpoint.add_subcommand(name, help);
  command->add_option("run", arguments->run, "Run folder.")->required()->type_name("RUN");
  return command;
}

// Adds the retention flags, which override the run's recipe.
void add_retention(CLI::App& command, const std::shared_ptr<KeepArguments>& arguments) {
  command.add_flag("--json", arguments->as_json, "Print one JSON object instead of text.");
  command
      .add_option("--keep-last", arguments->last,
                  "Number of newest checkpoints to keep. Default: as the recipe says.")
      ->check(CLI::NonNegativeNumber);
  CLI::Option* const steps =
      command
          .add_option(
              "--keep-every-steps", arguments->every_steps,
              "Keep checkpoints at least this many steps apart. Default: as the recipe says.")
          ->check(CLI::PositiveNumber);
  command
      .add_option("--keep-every-epochs", arguments->every_epochs,
                  "Keep checkpoints at least this many epochs apart. Default: as the recipe says.")
      ->check(CLI::PositiveNumber)
      ->excludes(steps);
  command
      .add_option("--keep-hours", arguments->hours,
                  "Keep checkpoints younger than this many hours. Default: as the recipe says.")
      ->check(CLI::PositiveNumber);
}

}  // namespace

void add_checkpoint_keep(CLI::App& checkpoint, int& exit_status) {
  const auto arguments = std::make_shared<KeepArguments>();
  CLI::App* const listing = add_command(
      checkpoint, "ls", "list the checkpoints of a run, and why each of them is kept", arguments);
  add_retention(*listing, arguments);
  listing->callback([arguments, &exit_status] {
    list(*arguments);
    exit_status = 0;
  });
  CLI::App* const pruning = add_command(
      checkpoint, "prune",
      "remove old checkpoints by the rules of the recipe or of flags, never the newest or the best",
      arguments);
  add_retention(*pruning, arguments);
  pruning->add_flag("--dry-run", arguments->dry_run,
                    "Only list the checkpoints that would be removed.");
  pruning->callback([arguments, &exit_status] {
    prune(*arguments);
    exit_status = 0;
  });
  CLI::App* const saving =
      add_command(checkpoint, "now", "save a checkpoint of a running job now", arguments);
  saving->callback([arguments, &exit_status] {
    save_now(*arguments);
    exit_status = 0;
  });
}

}  // namespace scaletrain::launcher
