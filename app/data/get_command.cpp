#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "app/data/files/commands.h"
#include "app/data/files/options.h"
#include "app/data/files/output.h"
#include "app/data/files/shard_files.h"
#include "lib/core/disk/disk.h"
#include "lib/core/error.h"
#include "lib/core/printable.h"
#include "lib/core/text/url.h"
#include "lib/data/set/quarantine_lists.h"
#include "lib/format/tar/tar.h"

namespace scaletrain::app {
namespace {

struct GetOptions {
  std::string key, field, folder;
  std::vector<std::string> paths;
  bool overwrite = false, as_json = false;
};

// Writes one field to standard output: the named one, otherwise the image.
void print_field(const ShardFile& shard, const format::TarGroup& group, const std::string& wanted) {
  const format::TarField* const field = wanted.empty() ? group.image() : group.find(wanted);
  if (field == nullptr) {
    std::string known;
    for (const format::TarField& each : group.fields) {
      known += " " + core::printable(each.extension);
    }
    throw core::DataError(fmt::format("{}: {}", shard.place(), format::shown_name(group.key)),
                          wanted.empty() ? "has no image" : fmt::format("has no .{}", wanted),
                          fmt::format("name one of its fields with --field:{}", known));
  }
  const std::string value = shard.read(field->member);
  print(isatty(STDOUT_FILENO) == 1 ? core::printable_lines(value) : value);
}

// Writes every field as a file; the folders of the key are dropped, so that no file is written
// elsewhere.
void write_fields(const ShardFile& shard, const format::TarGroup& group,
                  const GetOptions& options) {
  const std::string name = group.key.substr(group.key.rfind('/') + 1);
  std::vector<std::string> files;
  for (const format::TarField& field : group.fields) {
    std::string extension = field.extension;
    for (char& c : extension) c = c == '/' ? '_' : c;
    files.push_back(file_in(options.folder, fmt::format("{}.{}", name, extension)));
    refuse_existing(storage::file_storage(), files.back(), options.overwrite);
  }
  core::system_disk().make_folders(options.folder);
  for (std::size_t i = 0; i < files.size(); ++i) {
    core::write_durably(core::system_disk(), files[i], shard.read(group.fields[i].member));
    if (!options.as_json) print(core::printable(files[i]) + "\n");
  }
  if (options.as_json) print_json({{"shard", shard.place()}, {"key", group.key}, {"files", files}});
}

void run_get(const GetOptions& options) {
  const storage::Stores stores;
  const std::vector<std::string> paths = resolve_shards(stores, options.paths);
  const data::QuarantineLists quarantine(paths, stores);
  bool found = false;
  std::string left_out;  // the last shard that has it in quarantine
  for (const std::string& path : paths) {
    if (quarantine.holds_shard(path)) continue;
    const std::vector<std::string> keys = quarantine.keys_of(path);
    if (std::binary_search(keys.begin(), keys.end(), options.key)) {
      left_out = path;
      continue;
    }
    const ShardFile shard(stores, path);
    shard.for_each_group([&](const format::TarGroup& group) {
      if (group.key != options.key) return true;
      found = true;
      if (options.folder.empty()) {
        print_field(shard, group, options.field);
      } else {
        write_fields(shard, group, options);
      }
      return false;  // stops: data after it may be damaged
    });
    if (found) return;
  }
  if (!left_out.empty()) {
    throw core::DataError(
        fmt::format("{}: {}", core::shown_path(left_out), format::shown_name(options.key)),
        "is excluded by quarantine.json",
        "the file has the reason; tar -xf extracts the sample anyway");
  }
  throw core::DataError(format::shown_name(options.key), "no sample has this key",
                        "scaletrain data ls lists the keys");
}

}  // namespace

void add_get_command(CLI::App& app, int& exit_status) {
  const auto options = std::make_shared<GetOptions>();
  CLI::App* const command =
      app.add_subcommand("get",
                         "write the first sample with a key: its image to standard output, "
                         "or all its fields into a folder");
  command->add_option("KEY", options->key, "Key of the sample.")->required();
  add_shards_argument(*command, options->paths);
  CLI::Option* const field = command->add_option(
      "--field", options->field, "Field to print instead of the image, such as cls.");
  CLI::Option* const folder =
      command->add_option("--out", options->folder, "Folder to write all fields to.")
          ->excludes(field);
  add_overwrite_flag(*command, options->overwrite);
  command->add_flag("--json", options->as_json, "Print one JSON object; needs --out.")
      ->needs(folder);
  command->callback([options, &exit_status] {
    run_get(*options);
    exit_status = 0;
  });
}

}  // namespace scaletrain::app
