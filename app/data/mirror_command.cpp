#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "app/data/files/commands.h"
#include "app/data/files/options.h"
#include "app/data/files/output.h"
#include "lib/core/disk/disk.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/printable.h"
#include "lib/core/text/url.h"
#include "lib/format/checkpoint/checkpoint_folder_names.h"
#include "lib/mirror/fetch.h"
#include "lib/recipe/load.h"
#include "lib/storage/stores.h"

namespace scaletrain::app {
namespace {

constexpr std::int64_t kMaxRecipeBytes = 64 << 20;
constexpr const char* kNone = "has no checkpoint";
constexpr const char* kNoneRemedy = "use the value of /checkpoint/mirror in the run's recipe";

struct MirrorOptions {
  std::string place, run, recipe;
  std::int64_t newer_than = -1;
  std::optional<double> patience_s;
  bool with_recipe = false;
  bool as_json = false;
};

recipe::Storage settings_of(const MirrorOptions& options) {
  recipe::Storage settings;
  if (!options.recipe.empty()) settings = recipe::load_recipe(options.recipe).storage;
  settings.give_up_after_s = options.patience_s.value_or(settings.give_up_after_s);
  return settings;
}

bool is_finished(const storage::Storage& storage, const mirror::Copy& copy) {
  return storage::open_if_there(storage, fmt::format("{}/{}", copy.url, format::kManifestName)) !=
         nullptr;
}

// Recipe of the newest copy that has one; null if there is none.
nlohmann::ordered_json recipe_of(const storage::Storage& storage,
                                 const std::vector<mirror::Copy>& copies) {
  for (const mirror::Copy& copy : copies) {
    if (!is_finished(storage, copy)) continue;
    const auto text = storage::read_if_there(
        storage, fmt::format("{}/{}", copy.url, format::kRecipeFile), kMaxRecipeBytes);
    if (text) return *text;
  }
  return nullptr;
}

void list(const MirrorOptions& options, const storage::Storage& storage) {
  const std::vector<mirror::Copy> copies = mirror::list_copies(storage, options.place);
  nlohmann::ordered_json listed = nlohmann::ordered_json::array();
  std::string text;
  for (const mirror::Copy& copy : copies) {
    const bool finished = is_finished(storage, copy);
    listed.push_back({{"step", copy.step}, {"url", copy.url}, {"finished", finished}});
    text += fmt::format("{:>10}  {}{}\n", copy.step, core::shown_path(copy.url),
                        finished ? "" : "  not finished");
  }
  if (options.as_json) {
    nlohmann::ordered_json json{{"copies", listed}};
    if (options.with_recipe) json["recipe"] = recipe_of(storage, copies);
    return print_json(json);
  }
  if (copies.empty()) {
    throw core::CheckpointError(core::shown_path(options.place), kNone, kNoneRemedy);
  }
  print(text);
}

void fetch(const MirrorOptions& options, const storage::Storage& storage) {
  const std::filesystem::path checkpoints = std::filesystem::path(options.run) / "checkpoints";
  const auto fetched = mirror::fetch_newest(
      core::system_disk(), storage, options.place, checkpoints, options.newer_than,
      [](const std::string& damage) { core::warn("{}", damage); });
  if (options.as_json) {
    nlohmann::ordered_json json{{"checkpoint", nullptr}};
    if (fetched) json["checkpoint"] = fetched->checkpoint.string();
    return print_json(json);
  }
  if (!fetched) {
    throw core::CheckpointError(
        core::shown_path(options.place),
        options.newer_than < 0
            ? std::string("has no complete checkpoint")
            : fmt::format("has no complete checkpoint that is newer than step {}",
                          options.newer_than),
        kNoneRemedy);
  }
  print(core::printable(fetched->checkpoint.string()) + "\n");
}

void run_mirror(MirrorOptions options) {
  while (options.place.size() > 1 && options.place.ends_with('/')) options.place.pop_back();
  const storage::Stores stores(settings_of(options), std::nullopt);
  const storage::Storage& storage = stores.of(options.place);
  if (options.run.empty()) return list(options, storage);
  fetch(options, storage);
}

}  // namespace

void add_mirror_command(CLI::App& app, int& exit_status) {
  const auto options = std::make_shared<MirrorOptions>();
  CLI::App* const command = app.add_subcommand("mirror",
                                               "list the remote checkpoint copies of a run "
                                               "(checkpoint.mirror), or copy the newest one back");
  command->add_option("PLACE", options->place, "Folder or s3://... that checkpoint.mirror names.")
      ->required();
  CLI::Option* const to = command->add_option(
      "--to", options->run, "Run folder to which the newest complete copy is written.");
  to->type_name("RUN");
  command
      ->add_option("--newer-than", options->newer_than,
                   "With --to: write only a checkpoint newer than this step.")
      ->needs(to);
  command->add_option("--recipe", options->recipe,
                      "Recipe whose `storage` section says how the bucket is reached.");
  command
      ->add_option("--patience", options->patience_s,
                   "Time in seconds for which a failed request is retried. Default: "
                   "storage.give_up_after_s.")
      ->check(CLI::NonNegativeNumber);
  CLI::Option* const json =
      command->add_flag("--json", options->as_json, "print one JSON object instead of text");
  command
      ->add_flag("--with-recipe", options->with_recipe,
                 "With --json: add the recipe of the newest copy.")
      ->needs(json);
  command->callback([options, &exit_status] {
    run_mirror(*options);
    exit_status = 0;
  });
}

}  // namespace scaletrain::app
