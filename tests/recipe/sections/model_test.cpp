#include "lib/recipe/sections/model.h"

#include <doctest/doctest.h>

#include "lib/recipe/load.h"
#include "tests/recipe/recipe_support.h"

namespace scaletrain::recipe {

TEST_CASE("BatchNorm has two values at least") {
  const std::string resnet = R"(model={"name": "resnet18", "num_classes": 10})";
  CHECK(error_of(minimal_recipe(), {resnet, "data.image_size=32", "batch.per_device=1"}) ==
        "--set batch.per_device: is 1, of which BatchNorm cannot compute a deviation in images of "
        "32\n"
        "  use 2 or more, with a smaller /batch/accumulate for the same global batch");
  CHECK(error_of(minimal_recipe(), {resnet, "data.image_size=64", "batch.per_device=1"}) ==
        "no error");
}

TEST_CASE("the keys of a model that divide the image are checked against it") {
  CHECK(error_of(minimal_recipe(), {"model.name=vit_tiny", "data.image_size=30"}) ==
        "r.json:2: /model/patch_size: 4 does not divide /data/image_size, which is 30\n"
        "  change one of them");
}

}  // namespace scaletrain::recipe
