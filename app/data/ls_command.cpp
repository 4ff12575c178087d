#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/data/files/commands.h"
#include "app/data/files/options.h"
#include "app/data/files/output.h"
#include "app/data/files/shard_files.h"
#include "lib/core/error.h"
#include "lib/core/printable.h"
#include "lib/core/text/json_text.h"
#include "lib/core/text/url.h"
#include "lib/data/set/quarantine_lists.h"
#include "lib/format/key_set.h"
#include "lib/format/tar/tar_samples.h"
#include "lib/recipe/load.h"

namespace scaletrain::app {
namespace {

constexpr std::size_t kLsPieceBytes = 1 << 16;

struct LsOptions {
  std::vector<std::string> paths;
  std::string recipe;
  bool only_shards = false;
  bool as_json = false;
};

// Returns the class number or list of classes; null if there is none.
nlohmann::ordered_json listed_label(const ShardFile& shard, const format::TarGroup& group) {
  const format::TarField* const field = group.find("cls");
  if (field == nullptr || field->member.bytes > format::kMaxLabelBytes) return {};
  const std::string text = shard.read(field->member);
  if (const auto label = format::parse_label(text)) return *label;
  const auto labels = format::parse_labels(text);
  return labels ? nlohmann::ordered_json(*labels) : nlohmann::ordered_json();
}

std::string text_line(const ShardFile& shard, const format::TarGroup& group) {
  const nlohmann::ordered_json label = listed_label(shard, group);
  std::string line = fmt::format("{}\t{}\t{}\t", core::printable(shard.name()),
                                 core::printable(group.key), label.is_null() ? "-" : label.dump());
  for (std::size_t i = 0; i < group.fields.size(); ++i) {
    line += fmt::format("{}{}:{}", i == 0 ? "" : " ", core::printable(group.fields[i].extension),
                        group.fields[i].member.bytes);
  }
  return line;
}

std::string json_line(const ShardFile& shard, const format::TarGroup& group) {
  nlohmann::ordered_json fields = nlohmann::ordered_json::object();
  for (const format::TarField& field : group.fields) fields[field.extension] = field.member.bytes;
  const nlohmann::ordered_json line = {{"shard", shard.place()},
                                       {"key", group.key},
                                       {"label", listed_label(shard, group)},
                                       {"fields", fields}};
  return core::json_text(line);
}

core::DataError repeated_key(const ShardFile& shard, const std::string& key) {
  core::DataError error(fmt::format("{}: {}", shard.place(), format::shown_name(key)),
                        format::kKeyAgain, "scaletrain data check lists all damaged samples");
  return error;
}

void list_shards(const LsOptions& options, const storage::Stores& stores) {
  const std::vector<std::string> shards = resolve_shards(stores, options.paths);
  if (options.as_json) return print_json({{"shards", shards}});
  std::string text;
  for (const std::string& shard : shards) text += core::shown_path(shard) + "\n";
  print(text);
}

void run_ls(const LsOptions& options) {
  if (options.only_shards) {
    if (options.recipe.empty()) return list_shards(options, storage::Stores());
    return list_shards(options,
                       storage::Stores(recipe::load_recipe(options.recipe).storage, std::nullopt));
  }
  std::string piece;
  std::optional<core::DataError> repeated;  // reported when everything is listed
  const storage::Stores stores;
  const std::vector<std::string> paths = resolve_shards(stores, options.paths);
  const data::QuarantineLists quarantine(paths, stores);
  try {
    for (const std::string& path : paths) {
      if (quarantine.holds_shard(path)) continue;
      const std::vector<std::string> left_out = quarantine.keys_of(path);
      const ShardFile shard(stores, path);
      format::KeySet keys;
      shard.for_each_group([&](const format::TarGroup& group) {
        if (std::binary_search(left_out.begin(), left_out.end(), group.key)) return true;
        if (!keys.insert(group.key) && !repeated) repeated = repeated_key(shard, group.key);
        piece += (options.as_json ? json_line(shard, group) : text_line(shard, group)) + "\n";
        if (piece.size() >= kLsPieceBytes) print(std::exchange(piece, {}));
        return true;
      });
    }
  } catch (const core::DataError&) {
    print(piece);  // lines before the damage
    throw;
  }
  print(piece);
  if (repeated) throw core::DataError(*repeated);
}

}  // namespace

void add_ls_command(CLI::App& app, int& exit_status) {
  const auto options = std::make_shared<LsOptions>();
  CLI::App* const command = app.add_subcommand("ls",
                                               "list samples with shard, key, label and the bytes "
                                               "of each field, except those in quarantine.json");
  add_shards_argument(*command, options->paths);
  CLI::Option* const shards =
      command->add_flag("--shards", options->only_shards, "List the shards without opening them.");
  command
      ->add_option("--recipe", options->recipe,
                   "Recipe whose `storage` section names the object stores.")
      ->needs(shards);
  command->add_flag("--json", options->as_json,
                    "Print one JSON object for each sample; with --shards one for all shards.");
  command->callback([options, &exit_status] {
    run_ls(*options);
    exit_status = 0;
  });
}

}  // namespace scaletrain::app
