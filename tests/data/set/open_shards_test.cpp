#include "lib/data/set/open_shards.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "tests/data/image_support.h"
#include "tests/temporary_folder.h"

using namespace scaletrain::data;  // NOLINT(google-build-using-namespace)

namespace {

// Descriptors of this process that are open on files below `folder`.
int open_files(const std::filesystem::path& folder) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const auto target = std::filesystem::read_symlink(entry.path(), gone);
    count += !gone && target.parent_path() == folder ? 1 : 0;
  }
  return count;
}

}  // namespace

TEST_CASE("no more shards are open than the limit, and those in use stay") {
  const TemporaryFolder folder;
  std::vector<std::string> paths;
  std::vector<scaletrain::storage::Identity> identities;
  for (int i = 0; i < 10; ++i) {
    paths.push_back(folder.write(std::to_string(i), std::to_string(i)));
    identities.push_back(scaletrain::storage::file_storage().open(paths.back())->identity());
  }
  const OpenShards shards(std::make_shared<scaletrain::storage::Stores>(), paths, 3);
  const auto first = shards.get(0, identities[0]);
  CHECK(shards.get(0, identities[0]) == first);
  for (int round = 0; round < 2; ++round) {
    for (std::int64_t i = 1; i < 10; ++i) {
      std::byte byte{};
      shards.get(i, identities[static_cast<std::size_t>(i)])->read(0, {&byte, 1});
      CHECK(static_cast<char>(byte) == static_cast<char>('0' + i));
    }
  }
  CHECK(open_files(std::filesystem::canonical(folder.path)) == 4);  // three and `first`
  std::byte byte{};
  first->read(0, {&byte, 1});
  CHECK(byte == std::byte{'0'});
}
