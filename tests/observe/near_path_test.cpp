#include "lib/observe/near_path.h"

#include <doctest/doctest.h>

#include <filesystem>

namespace scaletrain::observe {

TEST_CASE("a path below the working directory is shown relative to it, others as they are") {
  const std::string here = std::filesystem::current_path().string();
  CHECK(near_path(here + "/runs/digits") == "runs/digits");
  for (const std::string& path : {here, here + "/", here + "-other/run", std::string("runs/digits"),
                                  std::string("s3://bucket/run")}) {
    CHECK(near_path(path) == path);
  }
}

}  // namespace scaletrain::observe
