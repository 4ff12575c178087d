#include "lib/data/set/quarantine_lists.h"

#include <filesystem>

#include "lib/core/log.h"
#include "lib/core/text/text.h"
#include "lib/core/text/url.h"
#include "lib/storage/storage.h"

namespace scaletrain::data {
namespace {

std::string folder_of(const std::string& path) {
  return std::filesystem::path(path).parent_path().string();
}

}  // namespace

QuarantineLists::QuarantineLists(const std::vector<std::string>& paths,
                                 const storage::Stores& stores) {
  std::size_t shards = 0, samples = 0;
  for (const std::string& path : paths) {
    const std::string folder = folder_of(path);
    const auto [list, is_new] = by_folder_.try_emplace(folder);
    if (is_new && core::url_scheme(path) != "pipe") {  // a command has no folder
      const std::string file = (folder.empty() ? "" : folder + "/") + format::kQuarantineFile;
      const auto text = storage::read_if_there(stores.of(path), file, format::kMaxQuarantineBytes);
      if (text) list->second = format::parse_quarantine(*text, core::shown_path(file));
    }
    if (holds_shard(path)) {
      ++shards;
    } else {
      samples += keys_of(path).size();
    }
  }
  if (shards + samples > 0) {
    core::warn("{} and {} more are excluded by quarantine.json", core::counted(shards, "shard"),
               core::counted(samples, "sample"));
  }
}

bool QuarantineLists::holds_shard(const std::string& path) const {
  return by_folder_.at(folder_of(path)).holds_shard(core::base_name(path));
}

std::vector<std::string> QuarantineLists::keys_of(const std::string& path) const {
  return by_folder_.at(folder_of(path)).keys_of(core::base_name(path));
}

}  // namespace scaletrain::data
