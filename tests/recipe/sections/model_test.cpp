#include "lib/recipe/sections/model.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <vector>

#include "lib/recipe/load.h"
#include "tests/recipe/recipe_support.h"

namespace scaletrain::recipe {

TEST_CASE("BatchNorm has two values at least") {
  const std::string resnet = R"(model={"name": "resnet18", "num_classes": 10})";
  CHECK(error_of(minimal_recipe(), {resnet, "data.image_size=32", "batch.per_device=1"}) ==
        "--set batch.per_device: is 1, which leaves BatchNorm one value for each channel with "
        "images of 32\n"
        "  use 2 or more, with a smaller /batch/accumulate for the same global batch, or \"norm\": "
        "\"group\" in /model");
  CHECK(error_of(minimal_recipe(), {resnet, "data.image_size=64", "batch.per_device=1"}) ==
        "no error");
  CHECK(error_of(minimal_recipe(), {resnet, "model.norm=group", "data.image_size=32",
                                    "batch.per_device=1"}) == "no error");
}

TEST_CASE("gradient accumulation with BatchNorm of one sample suggests another norm") {
  const auto advice = [](const std::vector<std::string>& set, std::int64_t accumulate) {
    std::vector<std::string> all{R"(model={"name": "resnet18", "num_classes": 10})"};
    all.insert(all.end(), set.begin(), set.end());
    const Recipe recipe = parse_recipe(minimal_recipe(), "r.json", all);
    return batch_norm_advice(
        recipe.model, {.per_device = 8, .accumulate = accumulate, .global = 2 * 8 * accumulate});
  };
  CHECK(advice({}, 4) ==
        "/model/norm: BatchNorm normalises by 8 samples at a time, not by the step's 64: use "
        "\"group\", which needs no other sample, or \"sync_batch\", which takes those of all ranks "
        "together");
  CHECK(advice({"model.norm=sync_batch"}, 4) ==
        "/model/norm: BatchNorm normalises by 8 samples at a time of each rank, not by the step's "
        "64: use \"group\", which needs no other sample");
  CHECK(advice({}, 1).empty());
  CHECK(advice({"model.norm=group"}, 4).empty());
  CHECK(advice({R"(model={"name": "vit_tiny", "num_classes": 10})"}, 4).empty());
}

TEST_CASE("an image has one channel or three") {
  CHECK(parse_recipe(minimal_recipe(), "r.json").model.in_channels == 3);
  CHECK(parse_recipe(minimal_recipe(), "r.json", {"model.in_channels=1"}).model.in_channels == 1);
  CHECK(error_of(minimal_recipe(), {"model.in_channels=2"}) ==
        "--set model.in_channels: 2 is neither 1 nor 3\n"
        "  use 3 for colours, 1 for brightness alone");
  CHECK(error_of(minimal_recipe(), {"model.in_channels=4"}) ==
        "--set model.in_channels: 4 is out of range\n"
        "  use an integer from 1 to 3");
}

TEST_CASE("the keys of a model that divide the image are checked against it") {
  CHECK(error_of(minimal_recipe(), {"model.name=vit_tiny", "data.image_size=30"}) ==
        "r.json:2: /model/patch_size: 4 does not divide /data/image_size, which is 30\n"
        "  change one of them");
}

TEST_CASE("rotary positions turn pairs: a head of an odd width is refused") {
  const std::string tokens = R"(data={"train": {"tokens": "a.bin"}})";
  const auto refusal = [&](const char* model, int heads) {
    return error_of(minimal_recipe(),
                    {fmt::format(R"(model={{"name": "{}", "positions": 1024, "dim": 12, )"
                                 R"("kv_heads": 1, "heads": {}}})",
                                 model, heads),
                     tokens});
  };
  for (const char* const model : {"llama", "mixtral"}) {
    CAPTURE(model);
    CHECK(refusal(model, 4) ==
          "--set model: /model/heads: 4 divides \"dim\" into parts of 3, which is odd\n"
          "  change one of them");
    CHECK(refusal(model, 5) ==
          "--set model: /model/heads: 5 does not divide \"dim\", which is 12\n"
          "  change one of them");
    CHECK(refusal(model, 3) == "no error");
  }
}

TEST_CASE("a ConvNeXt halves its maps three times: eight patches of its stem fit in the image") {
  const std::string convnext = R"(model={"name": "convnext_tiny", "num_classes": 10})";
  CHECK(error_of(minimal_recipe(), {convnext, "data.image_size=28"}) ==
        "--set model: /model/patch_size: 8 times 4 is more than /data/image_size, which is 28\n"
        "  change one of them");
  CHECK(error_of(minimal_recipe(), {convnext, "data.image_size=32"}) == "no error");
  CHECK(error_of(minimal_recipe(), {convnext, "data.image_size=28", "model.patch_size=2"}) ==
        "no error");
}

TEST_CASE("what is frozen is a pattern or a list of them") {
  const auto frozen = [](const std::string& set) {
    return parse_recipe(minimal_recipe(), "r.json", {set}).model.freeze;
  };
  CHECK((frozen("model.freeze=fc1.*") == std::vector<std::string>{"fc1.*"}));
  CHECK((frozen(R"(model.freeze=["fc1.*", "*.bias"])") ==
         std::vector<std::string>{"fc1.*", "*.bias"}));
  CHECK(frozen("model.freeze=[]").empty());
}

TEST_CASE("mistakes about what is frozen name what is allowed") {
  CHECK(error_of(minimal_recipe(), {"model.freeze=3"}) ==
        "--set model.freeze: 3 is not a text or a list\n"
        "  use a name of parameters, with * for any characters, or a list of them");
  CHECK(error_of(minimal_recipe(), {R"(model.freeze=["a", ""])"}) ==
        "--set model.freeze: /model/freeze/1: is empty\n"
        "  use a name of parameters, with * for any characters, or a list of them");
  CHECK(error_of(minimal_recipe(), {"optimizer.layer_decay=0"}) ==
        "--set optimizer.layer_decay: 0 is out of range\n  use a number above 0 and at most 1");
}

}  // namespace scaletrain::recipe
