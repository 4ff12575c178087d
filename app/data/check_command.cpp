#include "app/data/check_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "app/data/card.h"
#include "app/data/check_shard.h"
#include "app/data/options.h"
#include "app/data/output.h"
#include "app/data/shard_files.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/text.h"
#include "lib/core/url.h"
#include "lib/data/classes_file.h"
#include "lib/data/stored_index.h"
#include "lib/format/shard_index.h"
#include "lib/format/tar.h"
#include "lib/storage/storage.h"

namespace scaletrain::app {
namespace {

namespace fs = std::filesystem;

struct CheckOptions {
  std::vector<std::string> paths;
  bool repair = false, no_decode = false, as_json = false;
  int threads = 0;
};

// The shards of one folder, which share classes.json, card.json and quarantine.json.
struct FolderReport {
  std::string folder;
  std::vector<format::Quarantined> problems;  // that quarantine.json does not name yet
  std::vector<std::string> warnings;
  std::int64_t samples = 0, bytes = 0, quarantined = 0;
};

// The SHA-256 that a local shard's index holds, if the index is of this version of the shard.
std::string indexed_hash(const std::string& path) {
  std::error_code failed;
  if (!fs::is_regular_file(path, failed)) return "";
  const storage::Identity identity = storage::file_storage().open(path)->identity();
  return format::recorded_sha256(data::index_path(path, ""), data::version_of(identity));
}

// Moves problems that the list names already out of the report.
void leave_out_known(const format::Quarantine& list, FolderReport& report) {
  const auto known = [&](const format::Quarantined& problem) {
    if (list.holds_shard(problem.shard)) return true;
    const std::vector<std::string> keys = list.keys_of(problem.shard);
    return std::binary_search(keys.begin(), keys.end(), problem.key);
  };
  const auto first = std::stable_partition(report.problems.begin(), report.problems.end(),
                                           [&](const auto& problem) { return !known(problem); });
  report.quarantined = std::distance(first, report.problems.end());
  report.problems.erase(first, report.problems.end());
}

// Warnings: what training bears, but a person may not expect.
void add_warnings(std::int64_t ignored, std::int64_t misnamed, std::vector<std::uint64_t> keys,
                  const std::vector<std::int64_t>& by_class, FolderReport& report) {
  const auto add = [&](std::int64_t count, const std::string& text) {
    if (count > 0) report.warnings.push_back(fmt::format("{} {}", count, text));
  };
  add(ignored, "members are no part of a sample (folders, links, hidden names)");
  add(misnamed, "images are in another format than their extension says");
  std::sort(keys.begin(), keys.end());
  add(keys.end() - std::unique(keys.begin(), keys.end()), "keys are in more than one place");
  add(std::count(by_class.begin(), by_class.end(), 0), "classes of classes.json have no sample");
}

FolderReport check_folder(const storage::Stores& stores, const std::string& folder,
                          const std::vector<std::string>& shards, const CheckOptions& options) {
  FolderReport report;
  report.folder = folder;
  const std::vector<std::string> classes = data::read_classes(folder, stores.of(folder));
  const std::map<std::string, std::string> hashes = card_hashes(stores, folder);
  const format::Quarantine list = read_quarantine(stores, folder);
  const CheckRules rules{static_cast<std::int64_t>(classes.size()), !options.no_decode,
                         resolve_threads(options.threads)};
  std::vector<std::uint64_t> keys;
  std::vector<std::int64_t> by_class(classes.size());
  std::int64_t ignored = 0, misnamed = 0;
  observe::WorkProgress progress(STDERR_FILENO, "checking samples", 0);
  for (const std::string& path : shards) {
    const auto recorded = hashes.find(core::base_name(path));
    ShardReport shard =
        check_shard(stores, path, recorded != hashes.end() ? recorded->second : indexed_hash(path),
                    rules, progress);
    std::move(shard.problems.begin(), shard.problems.end(), std::back_inserter(report.problems));
    keys.insert(keys.end(), shard.keys.begin(), shard.keys.end());
    report.samples += shard.samples;
    report.bytes += shard.bytes;
    ignored += shard.ignored;
    misnamed += shard.misnamed;
    for (const auto& [label, count] : shard.labels) {
      if (label < static_cast<std::int64_t>(by_class.size())) {
        by_class[static_cast<std::size_t>(label)] += count;
      }
    }
  }
  leave_out_known(list, report);
  add_warnings(ignored, misnamed, std::move(keys), by_class, report);
  return report;
}

// Adds the problems to quarantine.json of the folder.
void repair(const storage::Stores& stores, const FolderReport& report) {
  if (report.problems.empty()) return;
  std::vector<format::Quarantined> entries = read_quarantine(stores, report.folder).entries();
  for (format::Quarantined problem : report.problems) {
    if (!core::is_utf8(problem.key)) {
      problem.problem = fmt::format("{}: {}", core::escape_control(problem.key), problem.problem);
      problem.key.clear();
    }
    // What a message quotes from a file may be any bytes.
    problem.problem =
        nlohmann::json::parse(nlohmann::json(problem.problem)
                                  .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace))
            .get<std::string>();
    entries.push_back(std::move(problem));
  }
  const std::string path = file_in(report.folder, format::kQuarantineFile);
  stores.of(path).write(path, format::encode_quarantine(format::Quarantine(std::move(entries))));
}

void print_text(const FolderReport& report, bool repaired) {
  for (const format::Quarantined& problem : report.problems) {
    const std::string key =
        problem.key.empty() ? "" : fmt::format(": {}", format::shown_name(problem.key));
    print(fmt::format("{}{}: {}\n", file_in(core::shown_path(report.folder), problem.shard), key,
                      core::escape_control(problem.problem)));
  }
  for (const std::string& warning : report.warnings) {
    print(fmt::format("{}: warning: {}\n", core::shown_path(report.folder), warning));
  }
  print(fmt::format(
      "{}: {} samples, {} wrong{}{}\n", core::shown_path(report.folder), report.samples,
      report.problems.size(),
      report.quarantined > 0 ? fmt::format(", {} more in quarantine", report.quarantined) : "",
      repaired && !report.problems.empty() ? fmt::format("; written to {}", format::kQuarantineFile)
                                           : ""));
}

nlohmann::ordered_json to_json(const FolderReport& report) {
  nlohmann::ordered_json problems = nlohmann::ordered_json::array();
  for (const format::Quarantined& problem : report.problems) {
    problems.push_back(
        {{"shard", problem.shard}, {"key", problem.key}, {"problem", problem.problem}});
  }
  return {{"folder", core::shown_path(report.folder)},
          {"samples", report.samples},
          {"bytes", report.bytes},
          {"problems", problems},
          {"warnings", report.warnings},
          {"quarantined", report.quarantined}};
}

// True where nothing is wrong, or everything that is was put into quarantine.
bool run_check(const CheckOptions& options) {
  const storage::Stores stores;
  std::map<std::string, std::vector<std::string>> folders;
  for (const std::string& path : resolve_shards(stores, options.paths)) {
    const std::string folder = folder_of(path);
    folders[folder.empty() ? "." : folder].push_back(path);
  }
  bool sound = true;
  nlohmann::ordered_json reports = nlohmann::ordered_json::array();
  for (const auto& [folder, shards] : folders) {
    const FolderReport report = check_folder(stores, folder, shards, options);
    if (options.repair) repair(stores, report);
    sound = sound && (report.problems.empty() || options.repair);
    if (options.as_json) {
      reports.push_back(to_json(report));
    } else {
      print_text(report, options.repair);
    }
  }
  if (options.as_json) print_json({{"sound", sound}, {"folders", reports}});
  return sound;
}

}  // namespace

void add_check_command(CLI::App& app, int& exit_status) {
  const auto options = std::make_shared<CheckOptions>();
  CLI::App* const command =
      app.add_subcommand("check", "tell everything that is wrong with shards; exit code 65 if so");
  add_shards_argument(*command, options->paths);
  command->add_flag("--repair", options->repair,
                    "write what is wrong to quarantine.json, which training leaves out");
  command->add_flag("--no-decode", options->no_decode, "do not decode the images");
  add_threads_flag(*command, options->threads);
  add_json_flag(*command, options->as_json);
  command->callback([options, &exit_status] {
    exit_status = run_check(*options) ? 0 : static_cast<int>(core::ExitCode::kData);
  });
}

}  // namespace scaletrain::app
