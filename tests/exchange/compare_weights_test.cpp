#include "lib/exchange/compare_weights.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "lib/core/error.h"
#include "lib/exchange/known_of_weights.h"
#include "lib/exchange/known_tokenizer.h"
#include "lib/format/hashed_file.h"
#include "lib/format/tokens/token_card.h"
#include "tests/exchange/recipe_support.h"
#include "tests/temporary_folder.h"

// tests/end_to_end/weights_recipe_test.py has the table of all commands.

namespace scaletrain::exchange {
namespace {

constexpr const char* kTimm = R"({"architecture": "resnet18", "num_classes": 3, "pretrained_cfg":
    {"mean": [0.5, 0.5, 0.5], "std": [0.229, 0.224, 0.225], "interpolation": "bicubic",
     "crop_pct": 0.875}})";
constexpr const char* kOurs = R"({"precision": "bf16_pure", "model": {"name": "resnet18",
    "num_classes": 2, "weights": "/w"}, "data": {"image_size": 32, "eval_resize": 0,
    "eval_filter": "bilinear", "normalize": {"mean": [0.1, 0.2, 0.3], "std": [1, 1, 1]}}})";
constexpr const char* kBesideLlama =
    R"({"model_type": "llama", "dtype": "bfloat16", "vocab_size": 50,
    "hidden_size": 8, "num_attention_heads": 2, "num_key_value_heads": 1, "num_hidden_layers": 2,
    "max_position_embeddings": 16, "rms_norm_eps": 1e-5})";

format::WeightFiles beside(const test::TemporaryFolder& folder, const char* name,
                           const std::string& text) {
  format::WeightFiles files;
  files.files = {folder.write("model.safetensors", "")};
  const std::string file = folder.write(name, text);
  if (std::string(name) == "config.json") files.config = file;
  return files;
}

recipe::Recipe images(const std::string& weights, const std::string& data = "") {
  return test::image_recipe(
      fmt::format(R"({{"name": "resnet18", "num_classes": 2, "weights": {}}})", weights), data);
}

recipe::Recipe tokens(const std::string& file, const std::string& weights, int vocabulary = 50) {
  return test::token_recipe(
      fmt::format(R"({{"name": "llama", "vocab_size": {}, "positions": 16, "dim": 8, "depth": 2,
                       "heads": 2, "kv_heads": 1, "weights": {}}})",
                  vocabulary, weights),
      file);
}

std::string card_of(const std::string& tokenizer) {
  return format::token_card_json({.tokenizer = tokenizer,
                                  .vocab_size = 50,
                                  .end_of_text = 0,
                                  .layout = "raw",
                                  .token_bytes = 2})
      .dump();
}

}  // namespace

TEST_CASE("preprocessing and classes of timm's config that differ are shown with both values") {
  const test::TemporaryFolder folder;
  const format::WeightFiles files = beside(folder, "config.json", kTimm);
  CHECK(differences_from_weights(images(R"("/w")"), files) ==
        "num_classes 3, not 2 (\"new_head\": true starts the head anew); "
        "mean [0.5, 0.5, 0.5], not [0.485, 0.456, 0.406]; eval_filter bicubic, not bilinear; "
        "crop 0.875, not 1 (image_size over eval_resize)");
  CHECK(differences_from_weights(
            images(R"({"path": "/w", "new_head": true, "allow_other": ["mean", "eval_*"]})",
                   R"(, "eval_resize": 36)"),
            files)
            .empty());
}

TEST_CASE("a recipe of ours beside weights is compared alike, and its dtype with precision") {
  const test::TemporaryFolder folder;
  const format::WeightFiles files = beside(folder, "recipe.json", kOurs);
  CHECK(known_of_weights(files).place.empty());  // it may be the recipe of the next training
  folder.write("classes.json", "[]");
  CHECK(differences_from_weights(images(R"("/w")"), files) ==
        "mean [0.1, 0.2, 0.3], not [0.485, 0.456, 0.406]; std [1, 1, 1], not [0.229, 0.224, "
        "0.225]; precision bf16_pure, not fp32");
  CHECK(known_of_weights(files).model ==
        nlohmann::json({{"name", "resnet18"}, {"num_classes", 2}}));
  CHECK(is_same_dtype("tf32", "fp32"));
  CHECK_FALSE(is_same_dtype("bf16", "fp16"));
}

TEST_CASE("a config of another program is known as far as its values make sense") {
  const test::TemporaryFolder folder;
  const KnownOfWeights known = known_of_weights(
      beside(folder, "config.json",
             R"({"architecture": "swin", "mean": 1, "std": ["a"], "crop_pct": 0})"));
  CHECK(known.model.empty());
  CHECK(known.mean.empty());
  CHECK(known.std.empty());
  CHECK_FALSE(known.crop.has_value());
  CHECK(known_of_weights({}).place.empty());
}

TEST_CASE("a vocabulary of another size is an error, the dtype a difference") {
  const test::TemporaryFolder folder;
  const format::WeightFiles files = beside(folder, "config.json", kBesideLlama);
  const std::string file = folder.file("a-000000.bin");
  CHECK(differences_from_weights(tokens(file, R"("/w")"), files) == "precision bf16, not fp32");
  CHECK(known_of_weights(files).model.at("dim") == 8);
  CHECK_THROWS_WITH_AS(
      differences_from_weights(tokens(file, R"("/w")", 60), files),
      (folder.file("config.json") + ": is of a model with 50 tokens, and /model/vocab_size is 60\n"
                                    "  set /model/vocab_size to 50, or leave it out")
          .c_str(),
      core::CheckpointError);
}

TEST_CASE("tokens of another tokenizer than the one beside the weights are an error") {
  const test::TemporaryFolder folder;
  const format::WeightFiles files = beside(folder, "config.json", kBesideLlama);
  const std::string file = folder.file("a-000000.bin");
  const std::string sum = format::sha256_of(folder.write("tokenizer.json", "{}"));
  const auto said = [&](const std::string& tokenizer, const std::string& weights = R"("/w")") {
    folder.write("a.tokens.json", card_of(tokenizer));
    try {
      return differences_from_weights(tokens(file, weights), files);
    } catch (const core::CheckpointError& error) {
      return error.found().substr(0, error.found().find(", and"));
    }
  };
  const std::string other = "the weights belong to the tokenizer tokenizer.json " + sum;
  CHECK(said("tokenizer.json " + sum) == "precision bf16, not fp32");
  CHECK(said("own.json " + sum) == "precision bf16, not fp32");
  CHECK(said("tokenizer.json 00") == other);
  CHECK(said("bytes") == other);
  CHECK(said("other.model 00") == "precision bf16, not fp32");  // there is none to compare
  CHECK(said("bytes", R"({"path": "/w", "allow_other": ["tokenizer", "precision"]})").empty());
}

TEST_CASE("tokens at a URL are compared by the card there") {
  const test::TemporaryFolder folder;
  const format::WeightFiles files = beside(folder, "config.json", kBesideLlama);
  const std::string sum = format::sha256_of(folder.write("tokenizer.json", "{}"));
  std::string asked;
  const auto check = [&](const std::string& card, const std::string& weights = R"("/w")") {
    asked.clear();
    check_tokenizer_at_url(tokens("https://host/folder/a-000000.bin", weights), files,
                           [&](const std::string& path) -> std::optional<std::string> {
                             asked = path;
                             if (card.empty()) return std::nullopt;
                             return card;
                           });
  };
  CHECK_NOTHROW(check(card_of("tokenizer.json " + sum)));
  CHECK(asked == "https://host/folder/a.tokens.json");
  CHECK_NOTHROW(check(""));
  CHECK_THROWS_AS(check("no card"), core::DataError);
  CHECK_THROWS_WITH_AS(
      check(card_of("tokenizer.json 00")),
      (folder.file("tokenizer.json") + ": the weights belong to the tokenizer tokenizer.json " +
       sum +
       ", and the training tokens to tokenizer.json 00 (https://host/folder/a.tokens.json)\n"
       "  tokenize with the tokenizer of the weights; to train the embeddings for another "
       "tokenizer, "
       "\"allow_other\": [\"tokenizer\"] in /model/weights")
          .c_str(),
      core::CheckpointError);
  CHECK_NOTHROW(
      check(card_of("tokenizer.json 00"), R"({"path": "/w", "allow_other": ["tokenizer"]})"));
  CHECK(asked.empty());
}

TEST_CASE("tokens of another tokenizer than a run's are an error, and without cards nothing is") {
  const test::TemporaryFolder folder;
  const std::string file = folder.file("a-000000.bin");
  CHECK_NOTHROW(check_tokenizer_of_run(file, folder.path));
  folder.write("cards/train.json", card_of("bytes"));
  CHECK_NOTHROW(check_tokenizer_of_run(file, folder.path));
  folder.write("a.tokens.json", card_of("bytes"));
  CHECK_NOTHROW(check_tokenizer_of_run(file, folder.path));
  folder.write("a.tokens.json", card_of("tokenizer.json 00"));
  CHECK_THROWS_AS(check_tokenizer_of_run(file, folder.path), core::CheckpointError);
}

TEST_CASE("the warning says what to do") {
  CHECK(weights_warning("/w", "mean 1, not 2") ==
        "/w: the weights were trained with mean 1, not 2; set it in the recipe, or name it in "
        "/model/weights/allow_other");
}

}  // namespace scaletrain::exchange
