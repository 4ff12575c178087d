#include "launcher/commands/plan/data_size.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "lib/recipe/load.h"
#include "lib/recipe/recipe.h"
#include "tests/temporary_folder.h"

namespace scaletrain::launcher {
namespace {

recipe::Recipe recipe_with(const std::string& model, const std::string& data) {
  return recipe::parse_recipe(
      fmt::format(R"({{"model": {}, "data": {}, "batch": {{"per_device": 4}},
                      "optimizer": {{"name": "adamw", "lr": 0.1}}, "steps": 10}})",
                  model, data),
      "r.json");
}

}  // namespace

TEST_CASE("images of class folders are counted with their bytes") {
  const test::TemporaryFolder folder;
  folder.write("set/cat/a.jpg", std::string(100, 'a'));
  folder.write("set/cat/b.png", std::string(300, 'b'));
  folder.write("set/dog/c.jpg", std::string(200, 'c'));
  folder.write("set/dog/notes.txt", "no image");
  const DataSize size = training_data_size(recipe_with(
      R"({"name": "mlp", "num_classes": 2})",
      fmt::format(R"({{"train": {{"folder": "{}"}}, "image_size": 16}})", folder.file("set"))));
  CHECK(size.samples == 3);
  CHECK(size.sample_bytes == 200);
}

TEST_CASE("token files are cut into samples of the context, two bytes a token") {
  const test::TemporaryFolder folder;
  const std::string file = folder.write("a.bin", std::string(64 * 2 * 10, 'x'));
  const DataSize size = training_data_size(recipe_with(
      R"({"name": "gpt2", "vocab_size": 512, "positions": 64, "dim": 16, "depth": 1, "heads": 2})",
      fmt::format(R"({{"train": {{"tokens": "{}"}}, "context": 64}})", file)));
  CHECK(size.samples == 10);
  CHECK(size.sample_bytes == 128);
}

TEST_CASE("shards at a URL are of unknown size") {
  const DataSize size = training_data_size(
      recipe_with(R"({"name": "mlp", "num_classes": 2})",
                  R"({"train": {"shards": "s3://bucket/train-{000000..000003}.tar"},
                                         "image_size": 16})"));
  CHECK(size.samples == 0);
  CHECK(size.sample_bytes == 0);
}

}  // namespace scaletrain::launcher
