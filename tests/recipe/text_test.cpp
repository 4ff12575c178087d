// Recipes of language models.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "lib/recipe/checks.h"
#include "lib/recipe/idle_keys.h"
#include "lib/recipe/load.h"
#include "tests/recipe/recipe_support.h"

namespace scaletrain::recipe {
namespace {

using Texts = std::vector<std::string>;

constexpr const char* kText = R"({
"model": {"name": "gpt2", "vocab_size": 257, "positions": 64, "dim": 32, "heads": 2},
"data": {"train": {"tokens": "/t/a-{0..1}.bin"}},
"optimizer": {"name": "adamw", "lr": 0.1},
"steps": 10
})";

}  // namespace

TEST_CASE("a window is as long as the model's positions where a recipe says nothing") {
  const Recipe recipe = parse_recipe(kText, "r.json");
  CHECK(recipe.data.context == 64);
  CHECK(recipe.data.token_bytes == 0);
  CHECK(recipe.data.train.tokens == Texts{"/t/a-0.bin", "/t/a-1.bin"});
  CHECK(parse_recipe(kText, "r.json", {"data.context=16"}).data.context == 16);
  CHECK(differing_keys(recipe, parse_recipe(to_json(recipe), "recipe.json")).empty());
  CHECK(error_of(kText, {"data.context=65"}) ==
        "--set data.context: 65 is more than \"positions\" of the model, which is 64\n"
        "  change one of them");
}

TEST_CASE("a token has at most as many experts as there are") {
  const auto error_with = [](int choices) {
    return error_of(kText, {fmt::format(R"(model={{"name": "mixtral", "dim": 32, "heads": 4,
                                                  "experts": 4, "experts_per_token": {}}})",
                                        choices)});
  };
  CHECK(error_with(4) == "no error");
  CHECK(error_with(5) ==
        "--set model: /model/experts_per_token: 5 is more than \"experts\", which is 4\n"
        "  change one of them");
}

TEST_CASE("a language model reads tokens, and tokens are not mixed") {
  CHECK(error_of(kText, {"data.train={\"shards\": \"a.tar\"}"}) ==
        "--set data.train: gpt2 reads tokens, and these are images\n"
        "  name token files: \"tokens\": \"train-{000000..000003}.bin\", as scaletrain data "
        "tokenize writes them");
  CHECK(error_of(kText, {"mix.mixup=0.2"}) ==
        "--set mix.mixup: /mix: mixes images, and these are tokens\n  leave it out");
}

TEST_CASE("keys for images are named as idle beside tokens") {
  for (const auto& [setting, key] : std::vector<std::pair<std::string, std::string>>{
           {"data.image_size=32", "/data/image_size"},
           {R"(data.resize_ramp={"from": 8, "over": {"steps": 1}})", "/data/resize_ramp"},
           {"data.eval_resize=300", "/data/eval_resize"},
           {"data.eval_filter=bicubic", "/data/eval_filter"},
           {"data.bad_samples.max_rate=0.5", "/data/bad_samples"},
           {"data.normalize.mean=[0,0,0]", "/data/normalize"},
           {"data.exif_orientation=true", "/data/exif_orientation"},
           {"data.jpeg=lenient", "/data/jpeg"},
           {"data.max_pixels=500", "/data/max_pixels"},
           {"data.label=folder", "/data/label"},
           {"data.samples_per_epoch=500", "/data/samples_per_epoch"}}) {
    const test::TemporaryFolder folder;
    const std::string file = folder.write("r.json", kText);
    const Texts idle = idle_keys(load_recipe(file, {setting}), key_origins(file, {setting}));
    REQUIRE_EQ(idle.size(), 1);
    CHECK(idle[0].ends_with(": " + key +
                            ": does nothing: it is for images, and the sets are of tokens"));
  }
  const test::TemporaryFolder folder;
  const std::string file = folder.write("r.json", kText);
  const Texts used{"data.context=8", "data.token_bytes=4", "data.document_attention=true",
                   "data.shuffle_shards=1"};
  CHECK(idle_keys(load_recipe(file, used), key_origins(file, used)).empty());
}

}  // namespace scaletrain::recipe
