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
  HashedFile file(core::system_disk(), path, 100);
  file.write(std::as_bytes(std::span(text)));
  file.write(std::as_bytes(std::span(text)));
  const FileEntry entry = file.finish();
  CHECK(test::read_bytes(path) == text + text);
  CHECK(entry.bytes == 1'400'006);  // 2 * (700,000 + 3)
  CHECK(entry.sha256 == core::Sha256().update(text + text).hex());
  CHECK(hash_file(path).bytes == entry.bytes);
  CHECK(hash_file(path).sha256 == entry.sha256);
}

TEST_CASE("an empty file has the checksum of nothing") {
  const test::TemporaryFolder folder;
  // printf '' | sha256sum
  const std::string sum = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
  CHECK(write_hashed(core::system_disk(), folder.path / "a", "").sha256 == sum);
  CHECK(hash_file(folder.path / "a").sha256 == sum);
}
