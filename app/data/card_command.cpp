#include "app/data/card_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "app/data/card.h"
#include "app/data/data_stats.h"
#include "app/data/in_order.h"
#include "app/data/options.h"
#include "app/data/output.h"
#include "app/data/shard_files.h"
#include "lib/core/clock.h"
#include "lib/core/disk.h"
#include "lib/core/error.h"
#include "lib/core/version.h"
#include "lib/data/classes_file.h"
#include "lib/format/hashed_file.h"
#include "lib/observe/work_progress.h"

namespace scaletrain::app {
namespace {

namespace fs = std::filesystem;

struct CardOptions {
  std::vector<std::string> paths, sources;
  std::string name, description, licence;
  int threads = 0;
  bool as_json = false;
};

struct CardShard {
  std::int64_t samples = 0;
  format::FileEntry file;
  std::map<std::int64_t, std::int64_t> by_class;
};

// One folder, which gets the card.
std::string folder_of(const std::vector<std::string>& paths) {
  std::string folder = fs::path(paths.at(0)).parent_path().string();
  for (const std::string& path : paths) {
    if (fs::path(path).parent_path().string() != folder) {
      throw core::UsageError(
          path, fmt::format("is not in {} as the first shard is", folder.empty() ? "." : folder),
          "a card is of the shards of one folder");
    }
  }
  return folder;
}

CardShard look_at(const std::string& path) {
  std::vector<ShardFile> shard;
  shard.emplace_back(path);
  CardShard result;
  for (const FoundSample& sample : find_samples(shard, 1)) {
    ++result.samples;
    ++result.by_class[sample.label];
  }
  result.file = format::hash_file(path);
  return result;
}

void run_card(const CardOptions& options) {
  const std::vector<std::string> paths = resolve_shards(options.paths);
  const std::string folder = folder_of(paths);
  const std::vector<std::string> classes = data::read_classes(folder);
  nlohmann::ordered_json shards = nlohmann::ordered_json::array();
  std::map<std::int64_t, std::int64_t> by_class;
  std::int64_t samples = 0;
  observe::WorkProgress progress(STDERR_FILENO, "hashing shards",
                                 static_cast<std::int64_t>(paths.size()));
  in_order<CardShard>(
      static_cast<std::int64_t>(paths.size()), resolve_threads(options.threads),
      [&](std::int64_t i, int) { return look_at(paths[static_cast<std::size_t>(i)]); },
      [&](std::int64_t i, const CardShard& shard) {
        shards.push_back(
            {{"name", fs::path(paths[static_cast<std::size_t>(i)]).filename().string()},
             {"samples", shard.samples},
             {"bytes", shard.file.bytes},
             {"sha256", shard.file.sha256}});
        samples += shard.samples;
        for (const auto& [label, count] : shard.by_class) by_class[label] += count;
        progress.add(1, shard.file.bytes);
      });
  nlohmann::ordered_json counts = nlohmann::ordered_json::array();
  for (const auto& [label, count] : by_class) {
    counts.push_back({{"label", label}, {"name", class_name(classes, label)}, {"samples", count}});
  }
  const nlohmann::ordered_json card = {
      {"version", 1},
      {"name", options.name.empty() ? fs::absolute(folder).lexically_normal().filename().string()
                                    : options.name},
      {"description", options.description},
      {"licence", options.licence},
      {"sources", options.sources},
      {"made_by", fmt::format("scaletrain {}", core::version())},
      {"time", core::unix_time()},
      {"samples", samples},
      {"classes", counts},
      {"shards", shards}};
  const fs::path path = fs::path(folder) / kCardFile;
  const std::string text =
      card.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  core::write_durably(core::system_disk(), path, text);
  print(options.as_json ? text
                        : fmt::format("{}: {} samples of {} classes in {} shards\n", path.string(),
                                      samples, by_class.size(), paths.size()));
}

}  // namespace

void add_card_command(CLI::App& app, int& exit_status) {
  const auto options = std::make_shared<CardOptions>();
  CLI::App* const command = app.add_subcommand(
      "card", "write card.json beside shards: provenance, licence, counts and SHA-256 hashes");
  add_shards_argument(*command, options->paths);
  command->add_option("--set-name", options->name, "of the set; default: its folder's name");
  command->add_option("--description", options->description, "what the set is");
  command->add_option("--licence,--license", options->licence, "under which it may be used");
  command->add_option("--source", options->sources, "where it comes from; repeatable")
      ->allow_extra_args(false);
  add_threads_flag(*command, options->threads);
  add_json_flag(*command, options->as_json);
  command->callback([options, &exit_status] {
    run_card(*options);
    exit_status = 0;
  });
}

}  // namespace scaletrain::app
