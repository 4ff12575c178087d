#include "lib/exchange/import_plan.h"

#include <doctest/doctest.h>

#include "lib/core/error.h"
#include "lib/format/safetensors/safetensors.h"
#include "lib/format/tokens/token_card.h"
#include "tests/exchange/recipe_support.h"
#include "tests/temporary_folder.h"

using namespace scaletrain;            // NOLINT(google-build-using-namespace)
using namespace scaletrain::exchange;  // NOLINT(google-build-using-namespace)

namespace {

// A source with one tensor.
ImportPlan plan_of(const test::TemporaryFolder& folder, const std::string& model = "",
                   const std::string& tensor = "fc.weight") {
  const std::string bytes(6, '\1');
  format::write_safetensors(core::system_disk(), folder.file("model.safetensors"),
                            {{tensor, "U8", {3, 2}, std::as_bytes(std::span(bytes))}}, {});
  const format::WeightSet weights(folder.file("model.safetensors"), "", [](const std::string&) {});
  ImportRequest request;
  request.out = "/runs/out";
  request.model = model;
  return plan_import(request, weights);
}

recipe::Recipe parsed(const ImportPlan& plan) {
  return recipe::parse_recipe(plan.recipe, "recipe.json");
}

}  // namespace

TEST_CASE("an image model's config becomes a recipe that can be read") {
  const test::TemporaryFolder folder;
  folder.write("config.json", R"({"architecture": "resnet18", "num_classes": 3,
      "label_names": ["a", "b", "c"], "pretrained_cfg": {"input_size": [3, 64, 64]}})");
  const ImportPlan plan = plan_of(folder);
  const recipe::Recipe recipe = parsed(plan);
  CHECK(recipe.model.name == "resnet18");
  CHECK(recipe.model.num_classes == 3);
  CHECK(recipe.data.image_size == 64);
  CHECK(recipe.data.eval_resize == 73);
  CHECK(recipe.data.train.shards ==
        std::vector<std::string>{"/runs/out/imported-without-data-000000.tar"});
  CHECK(plan.classes == std::vector<std::string>{"a", "b", "c"});
  CHECK(plan.files.empty());
}

TEST_CASE("the number of classes is the head's, with or without the prefix of a wrapper") {
  const test::TemporaryFolder folder;
  for (const char* const tensor : {"fc.weight", "model.fc.weight", "_forward_module.net.fc.weight",
                                   "backbone._orig_mod.fc.weight"}) {
    CAPTURE(tensor);
    CHECK(parsed(plan_of(folder, "resnet18", tensor)).model.num_classes == 3);
  }
}

TEST_CASE("a language model's tokenizer comes along with a card for generate") {
  const test::TemporaryFolder folder;
  folder.write("tokenizer.json", "{}");
  folder.write("config.json", R"({"model_type": "gpt2", "vocab_size": 70000, "n_positions": 16,
      "n_embd": 8, "n_layer": 2, "n_head": 2, "eos_token_id": [5, 6]})");
  const ImportPlan plan = plan_of(folder);
  const recipe::Recipe recipe = parsed(plan);
  CHECK(recipe.model.name == "gpt2");
  CHECK(recipe.model.integer("dim") == 8);
  REQUIRE(recipe.data.train.tokens.size() == 1);
  CHECK(format::token_card_path(recipe.data.train.tokens.front()) ==
        "/runs/out/imported-without-data.tokens.json");
  CHECK(plan.files.at("tokenizer.json") == "{}");
  const format::TokenCard card =
      format::parse_token_card(plan.files.at("imported-without-data.tokens.json"), "card");
  CHECK(card.tokenizer.starts_with("tokenizer.json "));
  CHECK(card.end_of_text == 5);
  CHECK(card.vocab_size == 70000);
  CHECK(card.token_bytes == 4);
}

TEST_CASE("without a tokenizer, or with a token that there is not, there is no card") {
  const test::TemporaryFolder folder;
  folder.write("config.json", R"({"model_type": "llama", "vocab_size": 8, "eos_token_id": 8})");
  CHECK(plan_of(folder).files == std::map<std::string, std::string>{
                                     {"special_token_ids.json", "{\n \"eos_token_id\": 8\n}\n"}});
  folder.write("tokenizer.json", "{}");
  CHECK(!plan_of(folder).files.contains("imported-without-data.tokens.json"));
  folder.write("config.json", R"({"model_type": "llama", "vocab_size": 9, "eos_token_id": 8})");
  CHECK(plan_of(folder).files.size() == 3);
  folder.write("config.json", R"({"model_type": "llama", "vocab_size": 9, "eos_token_id": "a"})");
  CHECK_THROWS_AS(plan_of(folder), core::CheckpointError);
}

TEST_CASE("an export of ours has its recipe and its classes beside it") {
  const test::TemporaryFolder folder;
  folder.write("recipe.json", "the recipe");
  CHECK(plan_of(folder).recipe == "the recipe");
  CHECK(plan_of(folder).classes.empty());
  folder.write("classes.json", R"(["cat", "dog"])");
  CHECK(plan_of(folder).classes == std::vector<std::string>{"cat", "dog"});
  folder.write("classes.json", "[1]");
  CHECK_THROWS_AS(plan_of(folder), core::CheckpointError);
}

TEST_CASE("bare weights need the model's name, and say how many classes there are") {
  const test::TemporaryFolder folder;
  CHECK_THROWS_AS(plan_of(folder), core::UsageError);
  const recipe::Recipe recipe = parsed(plan_of(folder, "resnet34"));
  CHECK(recipe.model.name == "resnet34");
  CHECK(recipe.model.num_classes == 3);
  CHECK(parsed(plan_of(folder, "gpt2")).model.name == "gpt2");
}
