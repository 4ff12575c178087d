#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "app/data/data_stats.h"
#include "app/data/files/card.h"
#include "app/data/files/commands.h"
#include "app/data/files/in_order.h"
#include "app/data/files/options.h"
#include "app/data/files/output.h"
#include "app/data/files/shard_set.h"
#include "lib/core/clock.h"
#include "lib/core/error.h"
#include "lib/core/text/json_text.h"
#include "lib/core/text/text.h"
#include "lib/core/text/url.h"
#include "lib/core/version.h"
#include "lib/data/set/classes_file.h"
#include "lib/format/hashed_file.h"
#include "lib/observe/work_progress.h"

namespace scaletrain::app {
namespace {

namespace fs = std::filesystem;

struct CardOptions {
  std::vector<std::string> paths, sources;
  std::string name, description, licence;
  int threads = 0;
  bool overwrite = false, as_json = false;
};

struct CardShard {
  std::int64_t samples = 0;
  format::FileEntry file;
  std::map<std::int64_t, std::int64_t> by_class;
};

// One folder, which gets the card.
std::string common_folder(const std::vector<std::string>& paths) {
  std::string folder = folder_of(paths.at(0));
  for (const std::string& path : paths) {
    if (folder_of(path) != folder) {
      throw core::UsageError(core::shown_path(path),
                             fmt::format("is not in {}, the folder of the first shard",
                                         folder.empty() ? "." : core::shown_path(folder)),
                             "a card describes the shards of one folder: name these only");
    }
  }
  return folder;
}

CardShard look_at(const ShardSet& set, std::size_t shard) {
  CardShard result;
  result.samples = for_each_batch_of(set, shard, 0,
                                     [&](const ShardFile&, const std::vector<FoundSample>& batch) {
                                       for (const FoundSample& sample : batch) {
                                         for (const std::int64_t label : sample.labels) {
                                           ++result.by_class[label];
                                         }
                                       }
                                     });
  result.file = hash_of(set.stores(), set.path(shard));
  return result;
}

std::string name_of_folder(const std::string& folder) {
  return core::is_url(folder) ? core::base_name(folder)
                              : fs::absolute(folder).lexically_normal().filename().string();
}

void run_card(const CardOptions& options) {
  const storage::Stores stores;
  const std::vector<std::string> paths = resolve_shards(stores, options.paths);
  const std::string folder = common_folder(paths), path = file_in(folder, kCardFile);
  refuse_existing(stores.of(path), path, options.overwrite);
  const std::vector<std::string> classes = data::read_classes(folder, stores.of(path));
  const ShardSet set(stores, paths);
  nlohmann::ordered_json shards = nlohmann::ordered_json::array();
  std::map<std::int64_t, std::int64_t> by_class;
  std::int64_t samples = 0;
  observe::WorkProgress progress(STDERR_FILENO, "hashing shards",
                                 static_cast<std::int64_t>(paths.size()));
  in_order<CardShard>(
      static_cast<std::int64_t>(paths.size()), resolve_threads(options.threads),
      [&](std::int64_t i, int) { return look_at(set, static_cast<std::size_t>(i)); },
      [&](std::int64_t i, const CardShard& shard) {
        shards.push_back({{"name", core::base_name(paths[static_cast<std::size_t>(i)])},
                          {"samples", shard.samples},
                          {"bytes", shard.file.bytes},
                          {"sha256", shard.file.sum}});
        samples += shard.samples;
        for (const auto& [label, count] : shard.by_class) by_class[label] += count;
        progress.add(1, shard.file.bytes);
      });
  nlohmann::ordered_json counts = nlohmann::ordered_json::array();
  for (const auto& [label, count] : by_class) {
    counts.push_back(
        {{"label", label}, {"name", data::class_name(classes, label)}, {"samples", count}});
  }
  const nlohmann::ordered_json card = {
      {"version", 1},
      {"name", options.name.empty() ? name_of_folder(folder) : options.name},
      {"description", options.description},
      {"licence", options.licence},
      {"sources", options.sources},
      {"made_by", fmt::format("scaletrain {}", core::version())},
      {"time", core::unix_time()},
      {"samples", samples},
      {"classes", counts},
      {"shards", shards}};
  const std::string text = core::json_text(card, 1) + "\n";
  stores.of(path).write(path, text);
  print(options.as_json ? text
                        : fmt::format("{}: {} of {} in {}\n", core::shown_path(path),
                                      core::counted(samples, "sample"),
                                      core::counted(std::ssize(by_class), "class"),
                                      core::counted(std::ssize(paths), "shard")));
}

}  // namespace

void add_card_command(CLI::App& app, int& exit_status) {
  const auto options = std::make_shared<CardOptions>();
  CLI::App* const command = app.add_subcommand(
      "card", "write card.json beside shards: provenance, licence, counts and SHA-256 hashes");
  add_shards_argument(*command, options->paths);
  command->add_option("--set-name", options->name,
                      "Name of the data set. Default: the name of its folder.");
  command->add_option("--description", options->description, "Description of the data set.");
  command->add_option("--licence,--license", options->licence,
                      "License of the data set, such as CC-BY-4.0.");
  command
      ->add_option("--source", options->sources,
                   "Origin of the data set, such as a URL. Repeatable.")
      ->allow_extra_args(false);
  add_overwrite_flag(*command, options->overwrite);
  add_threads_flag(*command, options->threads);
  add_json_flag(*command, options->as_json);
  command->callback([options, &exit_status] {
    run_card(*options);
    exit_status = 0;
  });
}

}  // namespace scaletrain::app
