#include "lib/exchange/language_config.h"

#include <doctest/doctest.h>

#include "lib/core/error.h"
#include "lib/format/safetensors/safetensors.h"
#include "tests/exchange/recipe_support.h"
#include "tests/temporary_folder.h"

using namespace scaletrain;            // NOLINT(google-build-using-namespace)
using namespace scaletrain::exchange;  // NOLINT(google-build-using-namespace)

namespace {

// One tensor of whole numbers of 8 bits.
format::WeightSet one_tensor(const test::TemporaryFolder& folder, const std::string& name,
                             const std::vector<std::int64_t>& shape) {
  std::size_t count = 1;
  for (const std::int64_t size : shape) count *= static_cast<std::size_t>(size);
  const std::string bytes(count, '\1');
  const std::string path = folder.file("model.safetensors");
  format::write_safetensors(core::system_disk(), path,
                            {{name, "U8", shape, std::as_bytes(std::span(bytes))}}, {});
  return {path, "", [](const std::string&) {}};
}

nlohmann::json language_model_of(const std::string& config) {
  const auto json = nlohmann::json::parse(config);
  return describe_language_config(ForeignConfig(json, "config.json")).model;
}

}  // namespace

TEST_CASE("GPT-2's config has transformers' names, and the hidden width of the tensors") {
  const test::TemporaryFolder folder;
  const format::WeightSet weights = one_tensor(folder, "h.0.mlp.c_fc.weight", {8, 20});
  const recipe::Recipe recipe = test::token_recipe(
      R"({"name": "gpt2", "vocab_size": 50, "positions": 16, "dim": 8, "depth": 2, "heads": 2,
          "mlp_ratio": 2.5, "dropout": 0.2})");
  const auto config = language_config(recipe, weights, 49, "F16");
  CHECK(config.dump() ==
        R"({"architectures":["GPT2LMHeadModel"],"model_type":"gpt2","vocab_size":50,)"
        R"("n_positions":16,"n_embd":8,"n_layer":2,"n_head":2,"n_inner":20,)"
        R"("activation_function":"gelu_new","layer_norm_epsilon":1e-05,"embd_pdrop":0.2,)"
        R"("attn_pdrop":0.2,"resid_pdrop":0.2,"tie_word_embeddings":true,"bos_token_id":49,)"
        R"("eos_token_id":49,"dtype":"float16","torch_dtype":"float16"})");
  CHECK(language_prefix(recipe.model) == "transformer.");
  const nlohmann::json back = language_model_of(config.dump());
  CHECK(back.dump() ==
        R"({"depth":2,"dim":8,"dropout":0.2,"heads":2,"mlp_ratio":2.5,"name":"gpt2",)"
        R"("positions":16,"vocab_size":50})");
}

TEST_CASE("Llama's config has its rotary positions as transformers reads them") {
  const test::TemporaryFolder folder;
  const format::WeightSet weights =
      one_tensor(folder, "model.layers.0.mlp.gate_proj.weight", {24, 8});
  const std::string sizes = R"("name": "llama", "vocab_size": 50, "positions": 16, "dim": 8,
                               "depth": 2, "heads": 2, "kv_heads": 1)";
  const auto config_of = [&](const std::string& more) {
    const recipe::Recipe recipe = test::token_recipe(fmt::format("{{{}{}}}", sizes, more));
    CHECK(language_prefix(recipe.model).empty());
    return language_config(recipe, weights, std::nullopt, "F32");
  };
  const auto plain = config_of("");
  CHECK(plain.dump() ==
        R"({"architectures":["LlamaForCausalLM"],"model_type":"llama","vocab_size":50,)"
        R"("max_position_embeddings":16,"hidden_size":8,"intermediate_size":24,)"
        R"("num_hidden_layers":2,"num_attention_heads":2,"num_key_value_heads":1,)"
        R"("hidden_act":"silu","rms_norm_eps":1e-05,"rope_theta":10000.0,"rope_scaling":null,)"
        R"("attention_bias":false,"mlp_bias":false,"tie_word_embeddings":false,)"
        R"("bos_token_id":null,"eos_token_id":null,"dtype":"float32","torch_dtype":"float32"})");
  CHECK(language_model_of(plain.dump()).dump() ==
        R"({"depth":2,"dim":8,"heads":2,"hidden":24,"kv_heads":1,"name":"llama",)"
        R"("norm_eps":1e-05,"positions":16,"rope_theta":10000.0,"tied":false,"vocab_size":50})");
  const auto linear = config_of(R"(, "rope_scaling": "linear", "rope_factor": 2, "tied": true)");
  CHECK(linear["rope_scaling"].dump() == R"({"rope_type":"linear","factor":2.0})");
  CHECK(linear["tie_word_embeddings"] == true);
  CHECK(language_model_of(linear.dump())["rope_factor"] == 2);
  const auto llama3 = config_of(
      R"(, "rope_scaling": "llama3", "rope_factor": 8, "rope_low": 2, "rope_high": 5,
         "rope_original_positions": 12)");
  CHECK(llama3["rope_scaling"].dump() ==
        R"({"rope_type":"llama3","factor":8.0,"low_freq_factor":2.0,"high_freq_factor":5.0,)"
        R"("original_max_position_embeddings":12})");
  const nlohmann::json back = language_model_of(llama3.dump());
  CHECK(back["rope_scaling"] == "llama3");
  CHECK(back["rope_low"] == 2);
  CHECK(back["rope_high"] == 5);
  CHECK(back["rope_original_positions"] == 12);
}

TEST_CASE("Mixtral's config has its experts, and a balance that transformers lacks is refused") {
  const test::TemporaryFolder folder;
  const format::WeightSet weights =
      one_tensor(folder, "model.layers.0.block_sparse_moe.experts.0.w1.weight", {24, 8});
  const auto config_of = [&](const std::string& more) {
    const recipe::Recipe recipe = test::token_recipe(fmt::format(
        R"({{"name": "mixtral", "vocab_size": 50, "positions": 16, "dim": 8, "depth": 2, "heads": 2,
             "kv_heads": 1{}}})",
        more));
    return language_config(recipe, weights, std::nullopt, "F32");
  };
  const auto plain = config_of(R"(, "experts": 4, "experts_per_token": 1, "capacity_factor": 2)");
  CHECK(plain.dump() ==
        R"({"architectures":["MixtralForCausalLM"],"model_type":"mixtral","vocab_size":50,)"
        R"("max_position_embeddings":16,"hidden_size":8,"intermediate_size":24,)"
        R"("num_hidden_layers":2,"num_attention_heads":2,"num_key_value_heads":1,)"
        R"("hidden_act":"silu","rms_norm_eps":1e-05,"rope_theta":10000.0,"rope_scaling":null,)"
        R"("tie_word_embeddings":false,"num_local_experts":4,"num_experts_per_tok":1,)"
        R"("router_aux_loss_coef":0.02,"output_router_logits":true,"sliding_window":null,)"
        R"("bos_token_id":null,"eos_token_id":null,"dtype":"float32","torch_dtype":"float32"})");
  CHECK(language_model_of(plain.dump()).dump() ==
        R"({"depth":2,"dim":8,"experts":4,"experts_per_token":1,"heads":2,"hidden":24,)"
        R"("kv_heads":1,"name":"mixtral","norm_eps":1e-05,"positions":16,"rope_theta":10000.0,)"
        R"("router_aux_loss":0.02,"tied":false,"vocab_size":50})");
  CHECK_THROWS_WITH_AS(config_of(R"(, "router_bias_rate": 0.1)"),
                       "--to huggingface: transformers' Mixtral has no router bias, and this model "
                       "was trained with /model/router_bias_rate\n"
                       "  export it as pt or safetensors",
                       core::UsageError);
}

TEST_CASE("a Mixtral's config that leaves all out is Mixtral 8x7B's") {
  CHECK(language_model_of(R"({"model_type": "mixtral"})").dump() ==
        R"({"depth":32,"dim":4096,"experts":8,"experts_per_token":2,"heads":32,"hidden":14336,)"
        R"("kv_heads":8,"name":"mixtral","norm_eps":1e-05,"positions":131072,)"
        R"("rope_theta":1000000.0,"router_aux_loss":0.001,"tied":false,"vocab_size":32000})");
}

TEST_CASE("newer and older names of rotary positions are both read") {
  const std::string start = R"({"model_type": "llama", )";
  CHECK(language_model_of(start +
                          R"("rope_parameters": {"rope_theta": 500, "rope_type": "default"}})")
            .at("rope_theta") == 500);
  const nlohmann::json old = language_model_of(
      start + R"("rope_theta": 700, "rope_scaling": {"type": "linear", "factor": 3}})");
  // As in transformers 5.23 the older name wins where both are there.
  const nlohmann::json both = language_model_of(
      start + R"("rope_scaling": {"type": "linear", "factor": 3}, "rope_theta": 700,
                 "rope_parameters": {"rope_theta": 500, "rope_type": "default"}})");
  CHECK(both == old);
  CHECK(language_model_of(start + R"("rope_scaling": null, "rope_parameters":
                                     {"rope_theta": 500}})")
            .at("rope_theta") == 500);
  CHECK(old["rope_theta"] == 700);
  CHECK(old["rope_scaling"] == "linear");
  CHECK(old["rope_factor"] == 3);
}

TEST_CASE("other names of what our models compute are read") {
  const nlohmann::json plain = language_model_of(R"({"model_type": "llama"})");
  CHECK(language_model_of(R"({"model_type": "llama", "hidden_act": "swish",
                              "pretraining_tp": 4})") == plain);
}

TEST_CASE("every hidden width of GPT-2 is found again from its ratio") {
  for (int dim = 8; dim <= 64; dim += 8) {
    for (int inner = 1; inner <= 4 * dim; ++inner) {
      const auto ratio = language_model_of(fmt::format(
          R"({{"model_type": "gpt2", "n_embd": {}, "n_inner": {}}})", dim, inner))["mlp_ratio"]
                             .get<double>();
      CHECK(static_cast<int>(dim * ratio) == inner);
    }
  }
}

TEST_CASE("a model that transformers does not have, or ours do not compute, is refused") {
  const test::TemporaryFolder folder;
  const format::WeightSet weights = one_tensor(folder, "a", {1});
  CHECK_THROWS_AS(language_config(test::image_recipe(R"({"name": "mlp", "num_classes": 2})"),
                                  weights, {}, "F32"),
                  core::UsageError);
  CHECK_THROWS_AS(language_config(test::token_recipe(R"("gpt2")"), weights, {}, "F32"),
                  core::CheckpointError);
  for (const auto& [config, key] : std::vector<std::pair<std::string, std::string>>{
           {R"({"model_type": "bert"})", "/model_type"},
           {R"({"model_type": "gpt2", "activation_function": "relu"})", "/activation_function"},
           {R"({"model_type": "gpt2", "layer_norm_epsilon": 1e-6})", "/layer_norm_epsilon"},
           {R"({"model_type": "gpt2", "scale_attn_by_inverse_layer_idx": true})",
            "/scale_attn_by_inverse_layer_idx"},
           {R"({"model_type": "gpt2", "attn_pdrop": 0.5})", "/attn_pdrop"},
           {R"({"model_type": "gpt2", "n_embd": 0})", "/n_embd"},
           {R"({"model_type": "llama", "hidden_act": "gelu"})", "/hidden_act"},
           {R"({"model_type": "llama", "attention_bias": true})", "/attention_bias"},
           {R"({"model_type": "llama", "num_attention_heads": 0})", "/num_attention_heads"},
           {R"({"model_type": "llama", "head_dim": 64})", "/head_dim"},
           {R"({"model_type": "mixtral", "sliding_window": 4096})", "/sliding_window"},
           {R"({"model_type": "mixtral", "router_jitter_noise": 0.1})", "/router_jitter_noise"},
           {R"({"model_type": "llama", "rope_scaling": {"rope_type": "yarn"}})",
            "/rope_scaling/rope_type"},
           {R"({"model_type": "llama", "rope_parameters": {"partial_rotary_factor": 0.5}})",
            "/rope_parameters/partial_rotary_factor"}}) {
    std::string place;
    try {
      language_model_of(config);
    } catch (const core::CheckpointError& error) {
      place = error.place();
    }
    const std::string expected = "config.json: " + key;
    CHECK(place == expected);
  }
}
