// Transforms and mixing in a recipe.
#include <doctest/doctest.h>

#include "lib/recipe/lists.h"
#include "lib/recipe/load.h"
#include "tests/recipe/recipe_support.h"

using namespace scaletrain::recipe;  // NOLINT(google-build-using-namespace)

namespace {

Recipe with_augment(const std::string& augment) {
  return parse_recipe(minimal_recipe(), "r.json", {"data.train.augment=" + augment});
}

std::string augment_error(const std::string& augment) {
  return error_of(minimal_recipe(), {"data.train.augment=" + augment});
}

}  // namespace

TEST_CASE("a name stands for a list of transforms, which the resolved recipe spells out") {
  const Recipe recipe = with_augment("torchvision-v2");
  const std::vector<Component>& augment = recipe.data.train.augment;
  REQUIRE(augment.size() == 4);
  CHECK(augment[0].name == "random_resized_crop");
  CHECK(augment[0].text("filter") == "bilinear");
  CHECK(augment[2].name == "trivial_augment");
  CHECK(augment[2].text("interpolation") == "bilinear");
  CHECK(augment[3].number("probability") == 0.1);
  const Recipe again = parse_recipe(to_json(recipe), "r.json");
  CHECK(differing_keys(recipe, again).empty());
}

TEST_CASE("every list of transforms by name can be read") {
  CHECK(augment_presets().size() >= 5);
  for (const Preset& preset : augment_presets()) {
    CAPTURE(preset.name);
    CHECK(with_augment(preset.name).data.train.augment.size() >= 2);
  }
}

TEST_CASE("a wrong list of transforms is told with its remedy") {
  const std::string unknown = augment_error("torchvision-v3");
  CAPTURE(unknown);
  CHECK(unknown.starts_with(
      "--set data.train.augment: \"torchvision-v3\" is not a list by name\n"
      "  use one of: torchvision-v1, torchvision-v2, timm-a1, timm-a3, deit, deit3, or a list of "
      "random_resized_crop, "));
  CHECK(augment_error(R"(["random_flip", "random_resized_crop"])") ==
        "--set data.train.augment: /data/train/augment/1: \"random_resized_crop\" chooses what is "
        "decoded and cannot come later\n"
        "  put it in front of the others, and leave out another crop");
  CHECK(augment_error(R"([{"name": "rand_augment", "interpolation": "cubic"}])") ==
        "--set data.train.augment: /data/train/augment/0/interpolation: \"cubic\" is not a choice "
        "here\n  use one of: \"nearest\", \"bilinear\"");
}

TEST_CASE("mixing needs pairs") {
  const std::vector<std::string> mix{"mix.mixup=0.2", "batch.per_device=33"};
  CHECK(error_of(minimal_recipe(), mix) ==
        "--set batch.per_device: 33 is odd, and /mix mixes pairs of samples\n"
        "  use 34");
  const Recipe recipe = parse_recipe(minimal_recipe(), "r.json", {"mix.mixup=0.2"});
  REQUIRE(recipe.mix.has_value());
  CHECK(recipe.mix->mixup == 0.2);
  CHECK(recipe.mix->cutmix == 0);
  CHECK(recipe.mix->probability == 1);
}

TEST_CASE("repeats are counted and do not go with the streamed order") {
  CHECK(parse_recipe(minimal_recipe(), "r.json", {"data.train.repeats=3"}).data.train.repeats == 3);
  CHECK(error_of(minimal_recipe(), {"data.train.repeats=3", "data.order=streamed"}) ==
        "--set data.train.repeats: does not go with the streamed order\n"
        "  leave it out, or use the indexed order");
}

TEST_CASE("an evaluated image is not resized to less than is cut out of it") {
  const std::vector<std::string> sets{"data.image_size=224", "data.eval_resize=256"};
  CHECK(parse_recipe(minimal_recipe(), "r.json", sets).data.eval_resize == 256);
  CHECK(error_of(minimal_recipe(), {"data.eval_resize=200"}) ==
        "--set data.eval_resize: 200 is less than \"image_size\", which is 224\n"
        "  use 256 as timm and torchvision do, or 0");
}

TEST_CASE("nor is one that is trained on") {
  CHECK(error_of(minimal_recipe(),
                 {R"(data.train.augment=[{"name": "center_crop", "resize": 200}])"}) ==
        "--set data.train.augment: /data/train/augment/0/resize: 200 is less than "
        "/data/image_size, which is 224\n"
        "  use 224 or more, or 0");
  parse_recipe(minimal_recipe(), "r.json", {R"(data.train.augment=["center_crop"])"});
}

TEST_CASE("a set is kept in memory by one word or with a size") {
  const Recipe plain = parse_recipe(minimal_recipe(), "r.json", {"data.train.cache=memory"});
  REQUIRE(plain.data.train.cache);
  CHECK(plain.data.train.cache->max_bytes == std::int64_t{1} << 30);
  const Recipe small = parse_recipe(
      minimal_recipe(), "r.json",
      {R"(data.val={"shards": "b.tar", "cache": {"name": "memory", "max_bytes": 1000}})"});
  CHECK(!small.data.train.cache);
  CHECK(small.data.val->cache->max_bytes == 1000);
  CHECK(differing_keys(small, parse_recipe(to_json(small), "r.json")).empty());
  CHECK(error_of(minimal_recipe(), {"data.train.cache=disk"}) ==
        "--set data.train.cache: /data/train/cache/name: \"disk\" is not a choice here\n"
        "  use one of: \"memory\"");
}
