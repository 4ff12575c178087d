#include "lib/storage/unpacked_file.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>

#include "lib/storage/stores.h"
#include "tests/format/tar/tar_support.h"
#include "tests/storage/packed.h"
#include "tests/storage/remote_support.h"
#include "tests/temporary_folder.h"

using namespace scaletrain::storage;  // NOLINT(google-build-using-namespace)
using scaletrain::test::TemporaryFolder;
namespace fs = std::filesystem;

TEST_CASE("a program without a recipe decompresses what it opens, and leaves no file") {
  const TemporaryFolder folder, temporary;
  const char* const before = std::getenv("TMPDIR");
  const std::string old = before == nullptr ? "" : before;
  ::setenv("TMPDIR", temporary.path.c_str(), 1);
  const std::string text(3 << 20, 'x');
  const std::string gzip = folder.write("a.tgz", packed(text, ARCHIVE_FILTER_GZIP));
  const std::string zstd = folder.write("b.tar.zst", packed(text + "y", ARCHIVE_FILTER_ZSTD));
  const Stores stores;
  const auto first = stores.open(gzip), second = stores.open(zstd);
  CHECK(first->identity().bytes == 3 << 20);
  CHECK(read_text(*first, 0, text.size()) == text);
  CHECK(read_text(*second, 3 << 20, 1) == "y");
  CHECK(fs::is_empty(temporary.path));

  const std::string cut = folder.write("cut.tgz", folder.read("a.tgz").substr(0, 999));
  CHECK(thrown_by([&] { stores.open(cut); }).starts_with("65 " + cut + ": does not decompress: "));
  const std::string plain = folder.write("plain.tgz", "text");
  CHECK(thrown_by([&] { stores.open(plain); }).starts_with("65 " + plain + ": is neither gzip"));
  ::setenv("TMPDIR", folder.file("absent").c_str(), 1);
  CHECK(thrown_by([&] { stores.open(gzip); }).starts_with("74 TMPDIR: "));

  CHECK((old.empty() ? ::unsetenv("TMPDIR") : ::setenv("TMPDIR", old.c_str(), 1)) == 0);
}
