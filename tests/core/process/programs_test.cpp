#include "lib/core/process/programs.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "lib/core/error.h"

namespace scaletrain::core {

TEST_CASE("what lies beside us is found") {
  CHECK(own_folder().is_absolute());
  CHECK(std::filesystem::exists(program_beside_us("test_core")));
  CHECK(program_beside_us("absent") == own_folder() / "absent");
}

TEST_CASE("a library that is not there is refused with the linker's reason and what to do") {
  CHECK_THROWS_WITH_AS(symbol_beside_us("libabsent.so", "start", "/device", "build it"),
                       doctest::Contains("/device: libabsent.so could not be opened ("),
                       UsageError);
}

}  // namespace scaletrain::core
