#include "app/data/files/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <set>
#include <string_view>

#include "lib/core/error.h"
#include "lib/core/process/cores.h"
#include "lib/core/text/shell_word.h"
#include "lib/core/text/url.h"
#include "lib/data/set/folder_files.h"
#include "lib/recipe/catalog/braces.h"
#include "lib/recipe/catalog/local_shards.h"
#include "lib/recipe/remote_shards.h"

namespace scaletrain::app {
namespace {

constexpr int kMaxThreads = 1024;

void append_shards_of(const storage::Stores& stores, const std::string& folder,
                      std::vector<std::string>& shards) {
  const std::size_t before = shards.size();
  bool may_be_pictures = false;  // or folders of images
  for (const auto& entry : stores.of(folder).list(folder)) {
    may_be_pictures = may_be_pictures || entry.folder || data::is_image_file(entry.name);
    if (entry.folder || entry.name.starts_with('.') || !recipe::is_shard_name(entry.name)) continue;
    shards.push_back(folder + (folder.ends_with('/') ? "" : "/") + entry.name);
  }
  if (shards.size() == before) {
    throw core::DataError(core::shown_path(folder), "has no .tar, .tar.gz, .tgz or .tar.zst file",
                          may_be_pictures
                              ? fmt::format("name a folder of shards; scaletrain data pack {} OUT "
                                            "makes shards from a folder of pictures",
                                            core::shell_word(core::shown_path(folder)))
                              : "name a folder of shards");
  }
}

}  // namespace

std::vector<std::string> shards_of_group(const storage::Stores& stores, const std::string& name) {
  const auto list = [&stores](const std::string& folder) {
    std::vector<std::string> objects;
    for (const auto& entry : stores.of(folder).list(folder)) {
      if (!entry.folder) objects.push_back(entry.name);
    }
    return objects;
  };
  std::string mistake;
  std::vector<std::string> shards = recipe::remote_shards(name, list, mistake);
  if (!mistake.empty()) {
    throw core::DataError(core::shown_path(name), mistake,
                          "name shards, a pattern or a folder of shards");
  }
  return shards;
}

void add_threads_flag(CLI::App& command, int& threads, const std::string& of) {
  command.add_option("--threads", threads, of + ". Default: one per core.")
      ->check(CLI::Range(1, kMaxThreads));
}

int resolve_threads(int threads) { return threads > 0 ? threads : core::usable_cores(); }

void add_json_flag(CLI::App& command, bool& as_json) {
  command.add_flag("--json", as_json, "Print one JSON object instead of text.");
}

void add_overwrite_flag(CLI::App& command, bool& overwrite) {
  command.add_flag("--overwrite", overwrite, "Replace existing output.");
}

void refuse_existing(const storage::Storage& storage, const std::string& path, bool overwrite) {
  if (overwrite) return;
  try {
    storage.open(path);
  } catch (const storage::AbsentError&) {
    return;
  }
  throw core::UsageError(core::shown_path(path), "exists already", "replace it with --overwrite");
}

void add_shards_argument(CLI::App& command, std::vector<std::string>& paths) {
  command
      .add_option("PATH", paths,
                  "Shards, patterns such as train-{000000..000003}.tar or train-*.tar, or folders. "
                  "Also .tar.gz, .tgz and .tar.zst, and s3://, gs:// and https:// URLs.")
      ->required();
}

std::vector<std::string> resolve_shards(const storage::Stores& stores,
                                        const std::vector<std::string>& paths) {
  std::error_code ignored;
  std::vector<std::string> shards;
  for (const std::string& path : paths) {
    if (std::filesystem::is_directory(path, ignored)) {
      append_shards_of(stores, path, shards);
      continue;
    }
    std::string mistake;
    const std::vector<std::string> expanded = recipe::expand_braces(path, mistake);
    if (!mistake.empty()) throw core::UsageError(core::shown_path(path), mistake);
    for (const std::string& name : expanded) {
      if (recipe::may_be_remote_group(name)) {
        const std::vector<std::string> found = shards_of_group(stores, name);
        shards.insert(shards.end(), found.begin(), found.end());
      } else if (std::filesystem::is_directory(name, ignored)) {
        append_shards_of(stores, name, shards);
      } else if (core::is_url(name)) {
        shards.push_back(name);
      } else {
        const std::vector<std::string> found = recipe::local_shards(name, mistake);
        if (!mistake.empty()) throw core::DataError(core::shown_path(name), "matches no file");
        shards.insert(shards.end(), found.begin(), found.end());
      }
    }
  }
  std::set<std::string> seen;  // a folder and a shard in it may both be named
  std::erase_if(shards, [&](const std::string& shard) {
    return !seen.insert(core::is_url(shard)
                            ? shard
                            : std::filesystem::path(shard).lexically_normal().string())
                .second;
  });
  return shards;
}

}  // namespace scaletrain::app
