#include "app/data/files/set_classes.h"

#include "app/data/files/shard_files.h"
#include "lib/core/error.h"
#include "lib/core/text/url.h"
#include "lib/data/set/classes_file.h"

namespace scaletrain::app {
namespace {

// False if the file exists already.
bool put_if_absent(const storage::Storage& storage, const std::string& folder,
                   const std::vector<std::string>& classes) {
  const std::string path = file_in(folder, kClassesFile);
  const std::string text = data::encode_classes(classes, core::shown_path(path));
  try {
    if (core::url_scheme(folder) != "gs") return storage.write_if_absent(path, text);
  } catch (const core::StorageError&) {
    if (core::is_url(folder)) throw;  // else a file system that may have no links
  }
  data::write_classes(folder, classes, storage);
  return true;
}

}  // namespace

void check_classes(const storage::Stores& stores, const std::string& folder,
                   const std::vector<std::string>& classes) {
  if (classes.empty()) return;
  const std::string place = core::shown_path(file_in(folder, kClassesFile));
  data::encode_classes(classes, place);
  const std::vector<std::string> there = data::read_classes(folder, stores.of(folder));
  if (there.empty() || there == classes) return;
  throw core::DataError(place, "has other classes than the new shards",
                        "all shards of a folder must have the same classes: choose another folder");
}

void keep_classes(const storage::Stores& stores, const std::string& folder,
                  const std::vector<std::string>& classes) {
  if (classes.empty()) return;
  const storage::Storage& storage = stores.of(folder);
  if (data::read_classes(folder, storage).empty() && put_if_absent(storage, folder, classes))
    return;
  check_classes(stores, folder, classes);
}

}  // namespace scaletrain::app
