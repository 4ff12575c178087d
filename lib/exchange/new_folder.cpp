#include "lib/exchange/new_folder.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "lib/core/disk/read_faults.h"
#include "lib/core/error.h"
#include "lib/format/tokenizer_file_names.h"

namespace scaletrain::exchange {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 7> kExported{
    "model.safetensors",     "model.pt", "model.pth", "config.json", "recipe.json", "classes.json",
    "generation_config.json"};

bool is_exported(std::string_view name) {
  const auto is_it = [&](std::string_view known) { return known == name; };
  return std::any_of(kExported.begin(), kExported.end(), is_it) ||
         std::any_of(format::kTokenizerFiles.begin(), format::kTokenizerFiles.end(), is_it);
}

// Protects a user's other files from a mistyped path.
void check_replaceable(const fs::path& out) {
  if (core::type_at(out) != fs::file_type::directory) {
    throw core::UsageError(out.string(), "exists already and is not a folder", "name a new one");
  }
  for (const std::string& name : core::names_in(out)) {
    if (is_exported(name)) continue;
    throw core::UsageError(out.string(),
                           fmt::format("has {}, which is not a file of an export", name),
                           "name a new folder");
  }
}

}  // namespace

void publish_folder(core::Disk& disk, const fs::path& out, bool replaces,
                    const std::function<void(const fs::path& folder)>& write) {
  // Handles "OUT/" too.
  const fs::path path = out.has_filename() ? out : out.parent_path();
  const bool is_there = core::type_at(path) != fs::file_type::not_found;
  if (is_there && !replaces) {
    throw core::UsageError(path.string(), "exists already", "replace it with --overwrite");
  }
  if (is_there) check_replaceable(path);
  const fs::path parent = path.has_parent_path() ? path.parent_path() : ".";
  const fs::path temporary = fmt::format("{}.tmp.{}", path.string(), ::getpid());
  const fs::path old = fmt::format("{}.old.{}", path.string(), ::getpid());
  try {
    disk.make_folders(temporary);
    write(temporary);
    disk.sync_folder(temporary);
    if (is_there) disk.rename(path, old);
    disk.rename(temporary, path);
  } catch (const core::Error&) {
    disk.remove_all(temporary);
    throw;
  }
  disk.sync_folder(parent);
  if (is_there) disk.remove_all(old);
}

}  // namespace scaletrain::exchange
