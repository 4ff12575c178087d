#include "app/data/import/import_tars.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "lib/data/set/classes_file.h"

namespace scaletrain::app {

ImportedTars::ImportedTars(const storage::Stores& stores, const std::vector<std::string>& paths)
    : stores_(stores), quarantine_(paths, stores), classes_(data::shared_classes(paths, stores)) {}

void ImportedTars::import(const std::string& path, const UseSample& use, ImportedSet& set) const {
  if (quarantine_.holds_shard(path)) return;
  const std::vector<std::string> left_out = quarantine_.keys_of(path);
  const auto use_sound = [&](const ImportedSample& sample) {
    if (!std::binary_search(left_out.begin(), left_out.end(), sample.key)) use(sample);
  };
  import_tar(stores_, path, use_sound, set);
}

std::vector<std::string> ImportedTars::folders(const std::vector<std::string>& paths) const {
  if (!classes_.empty()) return classes_;
  std::set<std::string> found;
  for (const std::string& path : paths) {
    if (quarantine_.holds_shard(path)) continue;
    for_each_key(stores_, path, [&](const std::string& key) {
      const std::filesystem::path folder = std::filesystem::path(key).parent_path().filename();
      if (!folder.empty() && folder != ".") found.insert(folder.string());
    });
  }
  return {found.begin(), found.end()};
}

std::vector<std::string> ImportedTars::classes(std::int64_t first_class) const {
  if (first_class < 0 || first_class >= std::ssize(classes_)) return {};
  return {classes_.begin() + first_class, classes_.end()};
}

}  // namespace scaletrain::app
