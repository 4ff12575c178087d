#include "lib/exchange/weights_classes.h"

#include <doctest/doctest.h>

#include "lib/core/error.h"
#include "tests/temporary_folder.h"

namespace scaletrain::exchange {
namespace {

using Names = std::vector<std::string>;

// The classes of weights in `folder`.
Names classes_in(const test::TemporaryFolder& folder, bool has_config = false) {
  format::WeightFiles files;
  files.files = {folder.file("model.safetensors")};
  if (has_config) files.config = folder.file("config.json");
  return classes_of_weights(files);
}

TEST_CASE("a checkpoint and an export of ours name their classes in classes.json") {
  const test::TemporaryFolder folder;
  folder.write("classes.json", R"(["cat", "dog"])");
  CHECK(classes_in(folder).empty());  // of shards that lie there
  folder.write("recipe.json", "{}");
  CHECK(classes_in(folder) == Names{"cat", "dog"});
  folder.write("classes.json", R"({"0": "cat"})");
  CHECK_THROWS_AS(classes_in(folder), core::CheckpointError);
  folder.write("classes.json", "<!doctype html>");
  CHECK_THROWS_WITH_AS(classes_in(folder), doctest::Contains("classes.json: is an HTML page"),
                       core::CheckpointError);
}

TEST_CASE("timm's config.json names classes in label_names") {
  const test::TemporaryFolder folder;
  folder.write("config.json", R"({"architecture": "resnet18", "label_names": ["cat", "dog"]})");
  CHECK(classes_in(folder, true) == Names{"cat", "dog"});
  CHECK(classes_in(folder).empty());
  folder.write("config.json", R"({"pretrained_cfg": {"label_names": ["emu"]}})");
  CHECK(classes_in(folder, true) == Names{"emu"});
  folder.write("config.json", R"({"model_type": "gpt2"})");
  CHECK(classes_in(folder, true).empty());
}

}  // namespace
}  // namespace scaletrain::exchange
