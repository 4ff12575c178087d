#include "app/data/files/class_claim.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdint>

#include "app/data/files/folder_lock.h"
#include "app/data/files/numbered_files.h"
#include "app/data/files/set_classes.h"
#include "lib/core/disk/disk.h"
#include "lib/core/error.h"
#include "lib/data/set/classes_file.h"
#include "lib/storage/storage.h"

namespace scaletrain::app {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMaxBytes = 64 << 20;  // above the limit of encode_classes()

// Throws if a process is writing shards with other classes; removes claims of ended processes.
void check_others(const std::string& folder, const std::string& text) {
  for (const auto& entry : storage::file_storage().list(folder)) {
    const fs::path file = fs::path(folder) / entry.name;
    const auto other = parse_unfinished(file);
    if (!other || other->becomes != kClassesFile || other->owner == ::getpid()) continue;
    if (!other->is_in_use) {
      core::system_disk().remove_all(file);
      continue;
    }
    const auto claimed = storage::read_if_there(storage::file_storage(), file.string(), kMaxBytes);
    if (!claimed || *claimed == text) continue;  // absent: it has ended just now
    throw core::DataError(
        folder, fmt::format("process {} is writing shards with other classes there", other->owner),
        "all shards of a folder must have the same classes: choose another folder, or give both "
        "commands the same list with --classes");
  }
}

}  // namespace

ClassClaim::ClassClaim(const storage::Stores& stores, const std::string& folder,
                       const std::vector<std::string>& classes)
    : file_(unfinished(fs::path(folder) / kClassesFile)) {
  const core::Descriptor lock = lock_folder(folder);
  check_classes(stores, folder, classes);
  const std::string text = data::encode_classes(classes, file_.string());
  check_others(folder, text);
  core::write_durably(core::system_disk(), file_, text);
}

ClassClaim::~ClassClaim() {
  std::error_code ignored;
  fs::remove(file_, ignored);
}

}  // namespace scaletrain::app
