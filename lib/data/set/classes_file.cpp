#include "lib/data/set/classes_file.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "lib/core/disk/disk.h"
#include "lib/core/error.h"
#include "lib/core/text/json_text.h"
#include "lib/core/text/placeholder.h"
#include "lib/core/text/url.h"

namespace scaletrain::data {
namespace {

constexpr std::int64_t kMaxBytes = 16 << 20;

std::string classes_path(const std::string& folder) {
  return folder + (folder.empty() || folder.ends_with('/') ? "" : "/") + "classes.json";
}

std::string folder_of_shard(const std::string& shard) {
  return std::filesystem::path(shard).parent_path().string();
}

// Parses the text of a classes file; `place` names the file in messages.
std::vector<std::string> parse_classes(std::string_view text, const std::string& place) {
  std::vector<std::string> names;
  bool sound = true;
  // Nested values are not kept: they could be too deep for the memory.
  const auto json = nlohmann::json::parse(
      text,
      [&](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
        sound = sound && depth < 2;
        return sound;
      },
      /*allow_exceptions=*/false);
  sound = sound && json.is_array();
  for (const auto& name : json) {
    sound = sound && name.is_string();
    if (sound) names.push_back(name);
  }
  if (!sound) {
    core::refuse_placeholder(place, text);
    throw core::DataError(place, "is not a JSON array of strings",
                          R"(write the names of the classes by label, as ["cat", "dog"])");
  }
  return names;
}

}  // namespace

std::vector<std::string> read_classes(const std::string& folder, const storage::Storage& storage) {
  const std::string path = classes_path(folder);
  const auto text = storage::read_if_there(storage, path, kMaxBytes);
  return text ? parse_classes(*text, core::shown_path(path)) : std::vector<std::string>();
}

std::vector<std::string> shared_classes(const std::vector<std::string>& shards,
                                        const storage::Stores& stores) {
  std::set<std::string> seen;
  std::string first;  // the first shard with a classes file beside it
  std::vector<std::string> classes;
  for (const std::string& shard : shards) {
    if (core::url_scheme(shard) == "pipe" || !seen.insert(folder_of_shard(shard)).second) continue;
    std::vector<std::string> found = read_classes(folder_of_shard(shard), stores.of(shard));
    if (found.empty()) continue;
    if (classes.empty()) {
      classes = std::move(found);
      first = shard;
    } else if (classes != found) {
      throw core::DataError(shown_classes_file(shard),
                            "has other classes than " + shown_classes_file(first),
                            "labels must have the same meaning in all parts of a set: use parts "
                            "with the same classes");
    }
  }
  return classes;
}

std::string shown_classes_file(const std::string& shard) {
  return core::shown_path(classes_path(folder_of_shard(shard)));
}

std::vector<std::string> read_classes_file(const std::string& path) {
  return parse_classes(core::read_file(path, kMaxBytes, core::ExitCode::kData), path);
}

std::string class_name(const std::vector<std::string>& classes, std::int64_t number) {
  return number >= 0 && number < static_cast<std::int64_t>(classes.size())
             ? classes[static_cast<std::size_t>(number)]
             : std::to_string(number);
}

std::string encode_classes(const std::vector<std::string>& classes, const std::string& place) {
  std::string text = core::json_text(nlohmann::json(classes), 1) + "\n";
  if (static_cast<std::int64_t>(text.size()) > kMaxBytes) {
    throw core::DataError(
        place, fmt::format("{} classes would take {} bytes", classes.size(), text.size()),
        fmt::format("at most {} bytes are read: number the classes from 0 on", kMaxBytes));
  }
  return text;
}

void write_classes(const std::string& folder, const std::vector<std::string>& classes,
                   const storage::Storage& storage) {
  const std::string path = classes_path(folder);
  storage.write(path, encode_classes(classes, core::shown_path(path)));
}

}  // namespace scaletrain::data
