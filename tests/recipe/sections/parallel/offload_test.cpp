#include "lib/recipe/sections/parallel/offload.h"

#include <doctest/doctest.h>

#include "lib/recipe/load.h"
#include "tests/recipe/recipe_support.h"

namespace scaletrain::recipe {

TEST_CASE("nothing goes to the host unless it is asked for, one kind by one") {
  CHECK_FALSE(parse_recipe(minimal_recipe(), "r.json").offload.has_value());
  const auto offload = parse_recipe(minimal_recipe(), "r.json", {"offload.optimizer=true"}).offload;
  REQUIRE(offload.has_value());
  CHECK(offload->optimizer);
  CHECK_FALSE(offload->activations);
  CHECK(
      parse_recipe(minimal_recipe(), "r.json", {"offload.activations=true"}).offload->activations);
  CHECK(error_of(minimal_recipe(), {"offload={}"}) ==
        "--set offload: none of \"activations\", \"parameters\", \"optimizer\" is there\n"
        "  add one of them");
}

TEST_CASE("parts of parameters go to the host with their optimizer, whose state may go to a disk") {
  const std::string shards = "parallel.shard=2";
  const Recipe recipe = parse_recipe(
      minimal_recipe(), "r.json",
      {shards,
       R"(offload={"parameters": true, "optimizer": true, "optimizer_folder": "/nvme/state"})"});
  CHECK(recipe.offload->parameters);
  CHECK(recipe.offload->optimizer_folder == "/nvme/state");
  const auto found = [](const std::vector<std::string>& changes) {
    return error_of(minimal_recipe(), changes);
  };
  CHECK(found({R"(offload={"activations": true, "optimizer_folder": "/nvme"})"}) ==
        "--set offload: /offload/optimizer_folder: is for an offloaded optimizer\n  set "
        "\"optimizer\": true too");
  CHECK(found({shards, "offload.parameters=true"}) ==
        "--set offload.parameters: shards in host memory are updated there\n"
        "  set \"optimizer\": true too");
  const std::string both = R"(offload={"parameters": true, "optimizer": true})";
  const std::string whole =
      "--set offload: /offload/parameters: is for sharded parameters\n"
      "  use \"parallel\": {\"shard\": N, \"shard_level\": \"parameters\"}, or leave it out";
  CHECK(found({both}) == whole);
  CHECK(found({both, shards, "parallel.shard_level=gradients"}) == whole);
  CHECK(found({both, shards, "sam={}"}) ==
        "--set offload: /offload/parameters: sam needs the weights on the device\n"
        "  leave one of them out in this version");
  CHECK(found({both, shards, "clip.adaptive=0.1"}) ==
        "--set offload: /offload/parameters: clip.adaptive needs the weights on the device\n"
        "  leave one of them out in this version");
}

}  // namespace scaletrain::recipe
