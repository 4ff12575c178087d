#include "lib/recipe/sections/dist.h"

#include <doctest/doctest.h>

#include "lib/recipe/load.h"
#include "tests/recipe/recipe_support.h"

namespace scaletrain::recipe {

TEST_CASE("what exchanges the tensors of CPUs is chosen by itself, or as asked") {
  CHECK(parse_recipe(minimal_recipe(), "r.json").dist.cpu == "auto");
  for (const char* const name : {"auto", "gloo", "shm"}) {
    CHECK(parse_recipe(minimal_recipe(), "r.json", {std::string("dist.cpu=") + name}).dist.cpu ==
          name);
  }
  CHECK(error_of(minimal_recipe(), {"dist.cpu=mpi"}) ==
        "--set dist.cpu: \"mpi\" is not a choice here\n  use one of: \"auto\", \"gloo\", \"shm\"");
}

}  // namespace scaletrain::recipe
