#include "lib/exchange/weights_model.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "lib/core/error.h"
#include "lib/format/checkpoint/checkpoint_folder_names.h"
#include "tests/exchange/recipe_support.h"
#include "tests/temporary_folder.h"

// tests/parity/weights_test.py compares with what transformers writes.

namespace scaletrain::exchange {
namespace {

constexpr const char* kSizes =
    R"("name": "llama", "vocab_size": 50, "positions": 16, "dim": 8, "depth": 2, "heads": 2,
       "kv_heads": 1)";

recipe::Model llama(const std::string& more = "", const std::string& weights = "") {
  return test::token_recipe(
             fmt::format(R"({{{}, "weights": {{"path": "/w"{}}}{}}})", kSizes, weights, more))
      .model;
}

// What is said of weights beside a config.json, or of a checkpoint with a recipe; "": nothing.
std::string said_of(const recipe::Model& model, const std::string& text, bool of_checkpoint) {
  const test::TemporaryFolder folder;
  format::WeightFiles files;
  const std::string file = folder.write(of_checkpoint ? format::kRecipeFile : "config.json", text);
  if (of_checkpoint) {
    files.checkpoint = folder.path;
  } else {
    files.config = file;
  }
  try {
    check_same_computation(model, files);
    return "";
  } catch (const core::CheckpointError& error) {
    const std::string found = error.what();
    CHECK(found.starts_with(file));
    return found.substr(file.size() + 2);
  }
}

std::string of_config(const std::string& keys, const recipe::Model& model = llama()) {
  return said_of(model, fmt::format(R"({{"hidden_size": 8, "num_attention_heads": 2{}}})", keys),
                 false);
}

constexpr const char* kLlama = R"(, "model_type": "llama", "rms_norm_eps": 1e-5)";

}  // namespace

TEST_CASE("values of Hugging Face's config that differ are named with both, and what to write") {
  CHECK(of_config(kLlama).empty());
  CHECK(of_config(fmt::format(R"({}, "rope_theta": 5e5, "tie_word_embeddings": true)", kLlama)) ==
        "is of a model with tied true, not false; rope_theta 500000.0, not 10000.0\n"
        "  set /model/tied to true, /model/rope_theta to 500000.0; to keep the difference, add "
        R"("allow_other": ["tied", "rope_theta"] in /model/weights)");
  // Without the key it is transformers' default.
  CHECK(of_config(R"(, "model_type": "llama")").starts_with("is of a model with norm_eps 1e-06"));
  CHECK(of_config(fmt::format(R"({}, "hidden_act": "gelu")", kLlama))
            .starts_with(R"(/hidden_act: is "gelu", and "silu" or "swish" is needed)"));
}

TEST_CASE("a number that was written in fp32 is the same") {
  CHECK(of_config(R"(, "model_type": "llama", "rms_norm_eps": 9.999999747378752e-06)").empty());
}

TEST_CASE("nothing is compared for another kind of model or without a file") {
  CHECK(of_config(R"(, "rope_theta": 5e5)").empty());
  CHECK(of_config(R"(, "model_type": "mistral", "rope_theta": 5e5)").empty());
  CHECK(of_config(R"(, "model_type": 1)").empty());
  CHECK_NOTHROW(check_same_computation(llama(), {}));
}

TEST_CASE("rotary positions that are stretched are compared in full") {
  const std::string linear =
      fmt::format(R"({}, "rope_scaling": {{"type": "linear", "factor": 2}})", kLlama);
  CHECK(of_config(linear) ==
        R"(is of a model with rope_scaling "linear", not "none"; rope_factor 2.0, not 1.0)"
        "\n  set /model/rope_scaling to \"linear\", /model/rope_factor to 2.0; to keep the "
        R"(difference, add "allow_other": ["rope_scaling", "rope_factor"] in /model/weights)");
  CHECK(of_config(linear, llama(R"(, "rope_scaling": "linear", "rope_factor": 2)")).empty());
  CHECK(of_config(kLlama, llama(R"(, "rope_scaling": "linear")"))
            .starts_with(R"(is of a model with rope_scaling "none", not "linear")"));
}

TEST_CASE("what the recipe allows may differ") {
  const std::string other =
      fmt::format(R"({}, "rope_theta": 5e5, "tie_word_embeddings": true)", kLlama);
  CHECK(of_config(other, llama("", R"(, "allow_other": ["rope_*", "tied"])")).empty());
  CHECK(of_config(other, llama("", R"(, "allow_other": "tied")"))
            .starts_with("is of a model with rope_theta 500000.0, not 10000.0\n"));
}

TEST_CASE("dropout is the training's own") {
  const recipe::Model gpt2 =
      test::token_recipe(R"({"name": "gpt2", "vocab_size": 50, "positions": 16, "dim": 8,
                             "depth": 2, "heads": 2, "weights": "/w"})")
          .model;
  const auto config = [&](const char* eps) {
    return said_of(gpt2,
                   fmt::format(R"({{"model_type": "gpt2", "n_embd": 8, "resid_pdrop": 0.2,
                                    "attn_pdrop": 0.3, "layer_norm_epsilon": {}}})",
                               eps),
                   false);
  };
  CHECK(config("1e-5").empty());
  CHECK(config("1e-6").starts_with("/layer_norm_epsilon: is 1e-06, and 1e-05 is needed"));
}

TEST_CASE("a checkpoint's recipe is compared alike, but for what it does not use") {
  const auto of_recipe = [](const std::string& keys) {
    return said_of(llama(), fmt::format(R"({{"model": {{"name": "llama"{}}}}})", keys), true);
  };
  CHECK(of_recipe(R"(, "rope_theta": 1e4, "rope_scaling": "none", "rope_factor": 3,
                      "rope_low": 9)")
            .empty());
  CHECK(of_recipe(R"(, "norm_eps": 0.25)")
            .starts_with("is of a model with norm_eps 0.25, not 1e-05\n"));
  CHECK(of_recipe(R"(, "rope_scaling": "linear", "rope_factor": 3, "rope_low": 9)")
            .starts_with(R"(is of a model with rope_scaling "linear", not "none"; rope_factor 3, )"
                         "not 1.0\n"));
  CHECK(said_of(llama(), R"({"model": {"name": "gpt2", "norm_eps": 1}})", true).empty());
  CHECK(said_of(llama(), R"({"name": "llama"})", true).empty());
}

}  // namespace scaletrain::exchange
