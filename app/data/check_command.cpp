#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "app/data/check_folder.h"
#include "app/data/files/commands.h"
#include "app/data/files/options.h"
#include "app/data/files/output.h"
#include "app/data/files/shard_files.h"
#include "lib/core/error.h"
#include "lib/core/printable.h"
#include "lib/core/text/text.h"
#include "lib/core/text/url.h"
#include "lib/format/tar/tar.h"

namespace scaletrain::app {
namespace {

struct CheckOptions {
  std::vector<std::string> paths;
  bool repair = false, no_decode = false, as_json = false;
  int threads = 0;
};

constexpr std::size_t kMostLines = 20;  // for each kind and folder

// The first lines, and how many more there are.
template <class Item, class Line>
void print_some(const std::string& folder, const std::vector<Item>& items, const Line& line_of) {
  for (std::size_t i = 0; i < std::min(items.size(), kMostLines); ++i) print(line_of(items[i]));
  if (items.size() > kMostLines) {
    print(fmt::format("{}: and {} more; --json lists all\n", folder, items.size() - kMostLines));
  }
}

// Summary of a folder: problems found, quarantine.json, and shards that could not be checked.
std::string summary(const FolderReport& report) {
  std::string text =
      fmt::format("{}, {} wrong", core::counted(report.samples, "sample"), report.problems.size());
  const std::int64_t left_out = report.left_out_samples + report.left_out_shards;
  if (report.rewritten) {
    text +=
        fmt::format("; {} was {}", format::kQuarantineFile, report.removed ? "removed" : "written");
    if (!report.stale.empty()) {
      text += fmt::format(", {} dropped", core::counted(std::ssize(report.stale), "entry"));
    }
  }
  if (left_out > 0) {
    text += fmt::format("; {} and {} more are in quarantine and left out",
                        core::counted(report.left_out_samples, "sample"),
                        core::counted(report.left_out_shards, "shard"));
  }
  if (!report.unchecked.empty()) {
    text += fmt::format("; {} could not be checked",
                        core::counted(std::ssize(report.unchecked), "shard"));
  }
  return text;
}

void print_text(const FolderReport& report) {
  const std::string folder = core::shown_path(report.folder);
  print_some(folder, report.problems, [&](const format::Quarantined& problem) {
    const std::string key =
        problem.key.empty() ? "" : fmt::format(": {}", format::shown_name(problem.key));
    return fmt::format("{}{}: {}\n", file_in(folder, core::printable(problem.shard)), key,
                       core::printable(problem.problem));
  });
  print_some(folder, report.unchecked, [&](const UncheckedShard& shard) {
    return fmt::format("{}: could not be checked: {}\n",
                       file_in(folder, core::printable(shard.shard)),
                       core::printable(shard.why.problem));
  });
  std::set<std::string> remedies;
  for (const UncheckedShard& shard : report.unchecked) remedies.insert(shard.why.remedy);
  for (const std::string& remedy : remedies) {
    if (!remedy.empty()) print(fmt::format("  {}\n", core::printable(remedy)));
  }
  for (const std::string& warning : report.warnings) {
    print(fmt::format("{}: warning: {}\n", folder, core::printable(warning)));
  }
  print(fmt::format("{}: {}\n", folder, summary(report)));
}

nlohmann::ordered_json to_json(const std::vector<format::Quarantined>& entries) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const format::Quarantined& entry : entries) {
    list.push_back({{"shard", entry.shard}, {"key", entry.key}, {"problem", entry.problem}});
  }
  return list;
}

nlohmann::ordered_json to_json(const FolderReport& report) {
  nlohmann::ordered_json unchecked = nlohmann::ordered_json::array();
  for (const UncheckedShard& shard : report.unchecked) {
    unchecked.push_back(
        {{"shard", shard.shard}, {"problem", shard.why.problem}, {"remedy", shard.why.remedy}});
  }
  return {
      {"folder", core::shown_path(report.folder)},
      {"samples", report.samples},
      {"bytes", report.bytes},
      {"problems", to_json(report.problems)},
      {"unchecked", unchecked},
      {"warnings", report.warnings},
      {"quarantined", {{"shards", report.left_out_shards}, {"samples", report.left_out_samples}}},
      {"stale", to_json(report.stale)},
      {"rewritten", report.rewritten}};
}

// Returns 65 if something outside the quarantine is invalid or missing, as a restart does not help;
// 74 if the machine or a storage failed.
core::ExitCode exit_code_for(const std::vector<FolderReport>& reports, bool repair) {
  core::ExitCode code = core::ExitCode::kOk;
  for (const FolderReport& report : reports) {
    if (!report.problems.empty() && !repair) return core::ExitCode::kData;
    for (const UncheckedShard& shard : report.unchecked) {
      code = shard.why.code;
      if (code == core::ExitCode::kData) return code;
    }
  }
  return code;
}

core::ExitCode run_check(const CheckOptions& options) {
  const storage::Stores stores;
  std::map<std::string, std::vector<std::string>> folders;
  for (const std::string& path : resolve_shards(stores, options.paths)) {
    const std::string folder = folder_of(path);
    folders[folder.empty() ? "." : folder].push_back(path);
  }
  CheckRules rules;
  rules.decode = !options.no_decode;
  rules.threads = resolve_threads(options.threads);
  std::vector<FolderReport> reports;
  for (const auto& [folder, shards] : folders) {
    reports.push_back(check_folder(stores, folder, shards, rules, options.repair));
    if (!options.as_json) print_text(reports.back());
  }
  const core::ExitCode code = exit_code_for(reports, options.repair);
  if (options.as_json) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const FolderReport& report : reports) list.push_back(to_json(report));
    print_json({{"sound", code == core::ExitCode::kOk}, {"folders", list}});
  }
  return code;
}

}  // namespace

void add_check_command(CLI::App& app, int& exit_status) {
  const auto options = std::make_shared<CheckOptions>();
  CLI::App* const command =
      app.add_subcommand("check",
                         "report everything that is wrong with shards. Exit code 65 if anything "
                         "is, 74 if a shard cannot be read");
  add_shards_argument(*command, options->paths);
  command->add_flag("--repair", options->repair,
                    "Write the damaged samples to quarantine.json; training skips them.");
  command->add_flag("--no-decode", options->no_decode, "Do not decode the images.");
  add_threads_flag(*command, options->threads);
  add_json_flag(*command, options->as_json);
  command->callback(
      [options, &exit_status] { exit_status = static_cast<int>(run_check(*options)); });
}

}  // namespace scaletrain::app
