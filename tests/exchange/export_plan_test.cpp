#include "lib/exchange/export_plan.h"

#include <doctest/doctest.h>

#include "lib/core/error.h"
#include "lib/format/safetensors/safetensors.h"
#include "tests/exchange/recipe_support.h"
#include "tests/temporary_folder.h"

using namespace scaletrain;            // NOLINT(google-build-using-namespace)
using namespace scaletrain::exchange;  // NOLINT(google-build-using-namespace)

namespace {

format::WeightSet some_weights(const test::TemporaryFolder& folder) {
  const std::string bytes(6, '\1');
  const std::string path = folder.file("model.safetensors");
  format::write_safetensors(
      core::system_disk(), path,
      {{"h.0.mlp.c_fc.weight", "U8", {2, 3}, std::as_bytes(std::span(bytes))}}, {});
  return {path, "", [](const std::string&) {}};
}

ExportSource source_of(recipe::Recipe recipe) {
  return {.recipe = std::move(recipe), .recipe_text = "{}", .classes = {"cat", "dog"}};
}

std::vector<std::string> files_of(const ExportPlan& plan) {
  std::vector<std::string> names{plan.weights};
  for (const auto& file : plan.files) names.push_back(file.first);
  return names;
}

}  // namespace

TEST_CASE("each library has its own files") {
  const test::TemporaryFolder folder;
  const format::WeightSet weights = some_weights(folder);
  const ExportSource resnet =
      source_of(test::image_recipe(R"({"name": "resnet18", "num_classes": 2})"));
  using Names = std::vector<std::string>;
  CHECK(export_kinds() == Names{"timm", "torchvision", "huggingface", "pt", "safetensors"});
  CHECK(files_of(plan_export("timm", resnet, weights, "F32")) ==
        Names{"model.safetensors", "config.json"});
  CHECK(files_of(plan_export("torchvision", resnet, weights, "F32")) ==
        Names{"model.pth", "config.json"});
  const ExportPlan pt = plan_export("pt", resnet, weights, "F32");
  CHECK(files_of(pt) == Names{"model.pt", "classes.json", "recipe.json"});
  CHECK(pt.files.at("classes.json") == "[\"cat\",\"dog\"]\n");
  CHECK(pt.files.at("recipe.json") == "{}");
  CHECK(pt.prefix.empty());
  CHECK(files_of(plan_export("safetensors", resnet, weights, "F32")) ==
        Names{"model.safetensors", "classes.json", "recipe.json"});
  CHECK_THROWS_AS(plan_export("huggingface", resnet, weights, "F32"), core::UsageError);

  const ExportPlan gpt2 =
      plan_export("huggingface", source_of(test::token_recipe(R"("gpt2")")), weights, "F32");
  CHECK(files_of(gpt2) == Names{"model.safetensors", "config.json"});
  CHECK(gpt2.prefix == "transformer.");

  ExportSource began_from = source_of(test::token_recipe(R"("gpt2")"));
  began_from.companions.files = {{"tokenizer.json", "{}"}, {"chat_template.jinja", "chat"}};
  began_from.companions.special_tokens = {
      {"bos_token_id", 3}, {"eos_token_id", {5, 6}}, {"pad_token_id", 0}};
  const ExportPlan with = plan_export("huggingface", began_from, weights, "F32");
  CHECK(files_of(with) ==
        Names{"model.safetensors", "chat_template.jinja", "config.json", "tokenizer.json"});
  CHECK(with.note.empty());
  const auto config = nlohmann::json::parse(with.files.at("config.json"));
  CHECK(config["bos_token_id"] == 3);
  CHECK(config["eos_token_id"] == nlohmann::json{5, 6});
  CHECK(config["pad_token_id"] == 0);
  CHECK(gpt2.note == "without a tokenizer: /data/a-000000.bin has no card on this machine");
}

TEST_CASE("whole numbers with scales are for the plain files alone") {
  CHECK(takes_int8("pt"));
  CHECK(takes_int8("safetensors"));
  CHECK(!takes_int8("timm"));
  CHECK(!takes_int8("torchvision"));
  CHECK(!takes_int8("huggingface"));
}

TEST_CASE("GPT-2's products have their outputs second") {
  const recipe::Model gpt2 = test::token_recipe(R"("gpt2")").model;
  CHECK(output_dim(gpt2, "h.0.attn.c_attn.weight") == 1);
  CHECK(output_dim(gpt2, "wte.weight") == 0);
  const recipe::Model llama = test::token_recipe(R"("llama")").model;
  CHECK(output_dim(llama, "model.layers.0.mlp.up_proj.weight") == 0);
}
