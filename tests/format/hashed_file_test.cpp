#include "lib/format/hashed_file.h"

#include <doctest/doctest.h>

#include "tests/format/checkpoint_support.h"
#include "tests/temporary_folder.h"

namespace fs = std::filesystem;
using namespace scaletrain;          // NOLINT(google-build-using-namespace)
using namespace scaletrain::format;  // NOLINT(google-build-using-namespace)

TEST_CASE("size and checksum are those of all bytes, and of the file when it is read back") {
  const test::TemporaryFolder folder;
  const fs::path path = folder.path / "a";
  const std::string text = std::string(700'000, 'x') + "end";  // more than one piece
  for (const Sum kind : {Sum::kXxh3, Sum::kSha256}) {
    HashedFile file(core::system_disk(), path, 100, kind);
    file.write(std::as_bytes(std::span(text)));
    file.write(std::as_bytes(std::span(text)));
    const FileEntry entry = file.finish();
    CHECK(test::read_bytes(path) == text + text);
    CHECK(entry.bytes == 1'400'006);  // 2 * (700,000 + 3)
    CHECK(entry.kind == kind);
    for (const FileEntry& same : {sum_up(text + text, kind), hash_file(path, kind)}) {
      CHECK(same.bytes == entry.bytes);
      CHECK(same.sum == entry.sum);
      CHECK(same.kind == kind);
    }
  }
}

TEST_CASE("an empty file has the sum of nothing") {
  const test::TemporaryFolder folder;
  // printf '' | xxhsum -H128
  CHECK(write_hashed(core::system_disk(), folder.path / "a", "").sum ==
        "99aa06d3014798d86001c324468d497f");
  // printf '' | sha256sum
  CHECK(sha256_of(folder.path / "a") ==
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}
