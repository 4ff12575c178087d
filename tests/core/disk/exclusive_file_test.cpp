#include "lib/core/disk/exclusive_file.h"

#include <doctest/doctest.h>

#include <cerrno>

#include "lib/core/disk/disk.h"
#include "lib/core/error.h"
#include "tests/temporary_folder.h"

namespace scaletrain::core {
namespace {

std::string text_of(const std::filesystem::path& file) {
  return read_file(file, 100, ExitCode::kData);
}

TEST_CASE("a name is given once, with hard links and without") {
  for (const bool has_links : {true, false}) {
    CAPTURE(has_links);
    const test::TemporaryFolder folder;
    // What is not there cannot be linked, as nothing can on a file system without links.
    if (has_links) folder.write("temporary", "first");
    const auto name = [&](const char* text) {
      return name_exclusively(folder.path / "temporary", folder.path / "lock", text);
    };
    const Exclusive first = name("first");
    CHECK(first.is_made);
    CHECK(first.error == 0);
    CHECK(first.link_error == (has_links ? 0 : ENOENT));
    CHECK(text_of(folder.path / "lock") == "first");
    const Exclusive second = name("second");
    CHECK(!second.is_made);
    CHECK(second.error == 0);
    CHECK(text_of(folder.path / "lock") == "first");
  }
}

TEST_CASE("a folder that is not there is an error") {
  const Exclusive result = name_exclusively("/no/such/temporary", "/no/such/lock", "text");
  CHECK(!result.is_made);
  CHECK(result.error == ENOENT);
}

}  // namespace
}  // namespace scaletrain::core
