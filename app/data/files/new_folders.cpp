#include "app/data/files/new_folders.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "lib/core/disk/disk.h"

namespace scaletrain::app {

NewFolders::~NewFolders() {
  std::for_each(made_.rbegin(), made_.rend(),
                [](const std::filesystem::path& folder) { ::rmdir(folder.c_str()); });
}

void NewFolders::make(const std::filesystem::path& folder) {
  constexpr mode_t kAsUmaskSays = 0777;
  std::filesystem::path above;
  for (const std::filesystem::path& part : folder) {
    above /= part;
    if (!part.empty() && ::mkdir(above.c_str(), kAsUmaskSays) == 0) made_.push_back(above);
  }
  core::system_disk().make_folders(folder);  // throws if it still cannot be made
}

}  // namespace scaletrain::app
