#include "lib/format/byte_reader.h"

#include <doctest/doctest.h>

#include "lib/core/error.h"
#include "tests/format/checkpoint_support.h"
#include "tests/temporary_folder.h"

namespace fs = std::filesystem;
using namespace scaletrain;          // NOLINT(google-build-using-namespace)
using namespace scaletrain::format;  // NOLINT(google-build-using-namespace)

TEST_CASE("a file is read at any place, and a read past its end names the place") {
  const test::TemporaryFolder folder;
  const fs::path path = folder.path / "a";
  test::write_bytes(path, "0123456789");
  const ByteReader reader(path);
  CHECK(reader.bytes() == 10);
  std::string out(3, '\0');
  reader.read(4, std::as_writable_bytes(std::span(out)));
  CHECK(out == "456");
  CHECK(test::message_of<core::CheckpointError>(
            [&] { reader.read(8, std::as_writable_bytes(std::span(out))); }) ==
        path.string() +
            ": ends at byte 10 while it is read\n  another program changed it: use another copy");
}
