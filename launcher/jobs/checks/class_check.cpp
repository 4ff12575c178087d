#include "launcher/jobs/checks/class_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include "lib/core/disk/disk.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/printable.h"
#include "lib/core/text/placeholder.h"
#include "lib/core/text/text.h"
#include "lib/core/text/url.h"
#include "lib/format/tar/tar.h"
#include "lib/recipe/recipe.h"

namespace scaletrain::launcher {
namespace {

namespace fs = std::filesystem;

// Returns {} if the folder cannot be listed, which is reported when it is opened. Throws
// core::DataError for a name that is not UTF-8.
std::vector<std::string> class_folders(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    std::string name = entry->path().filename().string();
    std::error_code ignored;
    if (!name.starts_with('.') && entry->is_directory(ignored)) names.push_back(std::move(name));
  }
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    if (core::is_utf8(name)) continue;
    throw core::DataError(fmt::format("{}/{}", folder, format::shown_name(name)),
                          "the name of a class folder is not UTF-8",
                          "rename the folder: it is the name of a class");
  }
  return names;
}

std::vector<std::string> names_of_file(const fs::path& file) {
  constexpr std::int64_t kMostClassBytes = 16 << 20;
  std::error_code ignored;
  if (!fs::is_regular_file(file, ignored)) return {};
  const std::string text = core::read_file(file, kMostClassBytes, core::ExitCode::kData);
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  const bool is_list =
      json.is_array() &&
      std::all_of(json.begin(), json.end(), [](const auto& one) { return one.is_string(); });
  if (is_list) return json.get<std::vector<std::string>>();
  core::refuse_placeholder(file.string(), text);
  throw core::DataError(file.string(), "is not a JSON array of strings",
                        R"(write the names of the classes by label, as ["cat", "dog"])");
}

// Names beside the shards, in one folder or in several, which must have the same.
format::ClassNames classes_of_shards(const std::vector<std::string>& shards) {
  std::set<fs::path> seen;
  format::ClassNames first;
  for (const std::string& shard : shards) {
    const fs::path folder = fs::path(shard).parent_path();
    if (core::is_url(shard) || !seen.insert(folder).second) continue;
    const fs::path file = folder / "classes.json";
    format::ClassNames found{names_of_file(file), file.string()};
    if (found.names.empty() || found.names == first.names) continue;
    if (first.names.empty()) {
      first = std::move(found);
      continue;
    }
    throw core::DataError(
        found.owner, "has other classes than " + first.owner,
        "labels must have the same meaning in all parts of a set: use parts with the same classes");
  }
  return first;
}

// Names of a source itself, without those of its sources.
format::ClassNames own_classes(const recipe::Source& source) {
  if (!source.folder.empty()) return {class_folders(source.folder), source.folder};
  return classes_of_shards(source.shards);
}

std::optional<format::ClassNames> classes_of_source(const recipe::Source& source) {
  format::ClassNames found = own_classes(source);
  for (std::size_t i = 0; i < source.sources.size() && found.names.empty(); ++i) {
    if (auto inner = classes_of_source(source.sources[i])) found = std::move(*inner);
  }
  if (found.names.empty()) return std::nullopt;
  return found;
}

void check_names(const recipe::Source& source, const format::ClassNames& training) {
  const format::ClassNames own = own_classes(source);
  if (!own.names.empty()) format::numbers_by_name(own.names, training, own.owner);
  for (const recipe::Source& inner : source.sources) check_names(inner, training);
}

}  // namespace

std::optional<format::ClassNames> classes_of_training(const recipe::Recipe& recipe) {
  // Classes have another meaning in other tasks.
  const bool has_classes =
      recipe.task == "image_classification" || recipe.task == "multi_label_classification";
  return has_classes ? classes_of_source(recipe.data.train) : std::nullopt;
}

void check_class_names(const recipe::Recipe& recipe) {
  auto training = classes_of_training(recipe);
  if (!training) return;
  training->owner = "data.train";
  check_names(recipe.data.train, *training);
  for (const auto& [name, source] : recipe::held_out(recipe.data)) check_names(*source, *training);
}

void check_class_count(const recipe::Recipe& recipe) {
  const auto classes = classes_of_training(recipe);
  if (!classes) return;
  const std::int64_t ours = recipe.model.num_classes, theirs = std::ssize(classes->names);
  if (theirs > ours) {
    throw core::RecipeError(
        "/model/num_classes",
        fmt::format("{} is less than the {} classes of {}", ours, theirs,
                    core::printable(classes->owner)),
        fmt::format("use {}, or leave it out: it is the number of class names then", theirs));
  }
  if (theirs < ours) {
    core::warn(
        "/model/num_classes: {} are more than the {} classes of {}: the other classes have no "
        "samples",
        ours, theirs, classes->owner);
  }
}

}  // namespace scaletrain::launcher
