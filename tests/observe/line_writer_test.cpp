#include "lib/observe/line_writer.h"

#include <doctest/doctest.h>

#include <memory>

#include "tests/observe/observe_support.h"
#include "tests/temporary_folder.h"

namespace scaletrain::observe {
namespace {

TEST_CASE("each line is appended with its newline") {
  const test::TemporaryFolder folder;
  const auto file = folder.path / "lines";
  write_text(file, "first\n");
  LineWriter writer(file, std::make_shared<core::Housekeeping>());
  writer.append("second");
  writer.append("third");
  CHECK(read_text(file) == "first\nsecond\nthird\n");
}

TEST_CASE("the first line of an empty file ends with the first field") {
  const test::TemporaryFolder folder;
  const auto file = folder.path / "lines";
  LineWriter writer(file, std::make_shared<core::Housekeeping>(), ",\"format\":1");
  writer.append("{\"a\":1}");
  writer.append("{\"a\":2}");
  CHECK(read_text(file) == "{\"a\":1,\"format\":1}\n{\"a\":2}\n");
}

TEST_CASE("lines of two writers do not overwrite each other") {
  const test::TemporaryFolder folder;
  const auto file = folder.path / "lines";
  const auto housekeeping = std::make_shared<core::Housekeeping>();
  LineWriter one(file, housekeeping), other(file, housekeeping);
  one.append("a");
  other.append("b");
  one.append("c");
  CHECK(read_text(file) == "a\nb\nc\n");
  CHECK(housekeeping->failures() == 0);
}

}  // namespace
}  // namespace scaletrain::observe
