// What holds between keys.
#include "lib/recipe/checks.h"

#include <doctest/doctest.h>

#include "lib/recipe/load.h"
#include "tests/recipe/recipe_support.h"

using namespace scaletrain::recipe;  // NOLINT(google-build-using-namespace)

TEST_CASE("an epoch has a step at least, and BatchNorm two values") {
  CHECK(error_of(minimal_recipe(), {"data.samples_per_epoch=10", "batch.per_device=32"}) ==
        "--set data.samples_per_epoch: 10 are less than a step's 32\n"
        "  use more, a smaller batch, or 0 for as many as the set has");
  const std::string resnet = R"(model={"name": "resnet18", "num_classes": 10})";
  CHECK(error_of(minimal_recipe(), {resnet, "data.image_size=32", "batch.per_device=1"}) ==
        "--set batch.per_device: is 1, of which BatchNorm cannot compute a deviation in images of "
        "32\n"
        "  use 2 or more, with a smaller /batch/accumulate for the same global batch");
  parse_recipe(minimal_recipe(), "r.json", {resnet, "data.image_size=64", "batch.per_device=1"});
}
