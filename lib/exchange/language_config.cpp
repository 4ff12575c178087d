#include "lib/exchange/language_config.h"

#include <fmt/format.h>

#include "lib/core/error.h"
#include "lib/recipe/recipe.h"

namespace scaletrain::exchange {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

// Constants of our models (lib/nn/models/gpt2.cpp).
constexpr double kGpt2Eps = 1e-5;

// Dimension `dim` of the tensor `name`, which the model has.
std::int64_t size_of(const format::WeightSet& weights, const std::string& name, std::size_t dim) {
  const format::WeightTensor* const tensor = weights.find(name);
  if (tensor != nullptr && dim < tensor->shape.size()) return tensor->shape[dim];
  throw core::CheckpointError(weights.files().files.front().string(),
                              fmt::format("has no tensor \"{}\" of {} dimensions", name, dim + 1),
                              "use another checkpoint");
}

const char* torch_name(std::string_view dtype) {
  if (dtype == "BF16") return "bfloat16";
  return dtype == "F16" ? "float16" : "float32";
}

ordered_json gpt2_config(const recipe::Model& model, const format::WeightSet& weights) {
  const double dropout = model.number("dropout");
  return {{"architectures", {"GPT2LMHeadModel"}},
          {"model_type", "gpt2"},
          {"vocab_size", model.integer("vocab_size")},
          {"n_positions", model.integer("positions")},
          {"n_embd", model.integer("dim")},
          {"n_layer", model.integer("depth")},
          {"n_head", model.integer("heads")},
          {"n_inner", size_of(weights, "h.0.mlp.c_fc.weight", 1)},
          {"activation_function", "gelu_new"},
          {"layer_norm_epsilon", kGpt2Eps},
          {"embd_pdrop", dropout},
          {"attn_pdrop", dropout},
          {"resid_pdrop", dropout},
          {"tie_word_embeddings", true}};
}

// In the layout of transformers 4, which version 5 reads too.
ordered_json rope_scaling(const recipe::Model& model) {
  const std::string& kind = model.text("rope_scaling");
  if (kind == "none") return nullptr;
  ordered_json scaling = {{"rope_type", kind}, {"factor", model.number("rope_factor")}};
  if (kind == "llama3") {
    scaling["low_freq_factor"] = model.number("rope_low");
    scaling["high_freq_factor"] = model.number("rope_high");
    scaling["original_max_position_embeddings"] = model.integer("rope_original_positions");
  }
  return scaling;
}

ordered_json llama_config(const recipe::Model& model, std::int64_t hidden) {
  return {{"architectures", {"LlamaForCausalLM"}},
          {"model_type", "llama"},
          {"vocab_size", model.integer("vocab_size")},
          {"max_position_embeddings", model.integer("positions")},
          {"hidden_size", model.integer("dim")},
          {"intermediate_size", hidden},
          {"num_hidden_layers", model.integer("depth")},
          {"num_attention_heads", model.integer("heads")},
          {"num_key_value_heads", model.integer("kv_heads")},
          {"hidden_act", "silu"},
          {"rms_norm_eps", model.number("norm_eps")},
          {"rope_theta", model.number("rope_theta")},
          {"rope_scaling", rope_scaling(model)},
          {"attention_bias", false},
          {"mlp_bias", false},
          {"tie_word_embeddings", model.flag("tied")}};
}

// As in Hugging Face's files; a recipe's capacity_factor is for training only.
ordered_json mixtral_config(const recipe::Model& model, const format::WeightSet& weights) {
  if (model.number("router_bias_rate") > 0) {
    throw core::UsageError("--to huggingface",
                           "transformers' Mixtral has no router bias, and this model was trained "
                           "with /model/router_bias_rate",
                           "export it as pt or safetensors");
  }
  ordered_json config = llama_config(
      model, size_of(weights, "model.layers.0.block_sparse_moe.experts.0.w1.weight", 0));
  config["architectures"] = {"MixtralForCausalLM"};
  config["model_type"] = "mixtral";
  for (const char* const key : {"attention_bias", "mlp_bias"}) config.erase(key);
  config["num_local_experts"] = model.integer("experts");
  config["num_experts_per_tok"] = model.integer("experts_per_token");
  config["router_aux_loss_coef"] = model.number("router_aux_loss");
  config["output_router_logits"] = model.number("router_aux_loss") > 0;  // train with the loss
  config["sliding_window"] = nullptr;
  return config;
}

json describe_gpt2(const ForeignConfig& config) {
  config.allow("activation_function", {"gelu_new", "gelu_pytorch_tanh"});
  config.allow("layer_norm_epsilon", {kGpt2Eps});
  config.allow("scale_attn_weights", {true});
  config.allow("scale_attn_by_inverse_layer_idx", {false});
  config.allow("add_cross_attention", {false});
  config.allow("tie_word_embeddings", {true});
  const std::int64_t dim = config.integer("n_embd", 768);
  const std::int64_t inner = config.integer("n_inner", 4 * dim);
  if (dim < 1) config.refuse("n_embd", "1 or more");
  const double dropout = config.number("resid_pdrop", 0.1);
  config.allow("embd_pdrop", {dropout});
  config.allow("attn_pdrop", {dropout});
  // The hidden width is dim times the ratio, without its fraction.
  const double ratio = static_cast<double>(inner) / static_cast<double>(dim);
  const bool is_below = static_cast<std::int64_t>(static_cast<double>(dim) * ratio) < inner;
  return {{"name", "gpt2"},
          {"vocab_size", config.integer("vocab_size", 50257)},
          {"positions", config.integer("n_positions", 1024)},
          {"dim", dim},
          {"depth", config.integer("n_layer", 12)},
          {"heads", config.integer("n_head", 12)},
          {"mlp_ratio", is_below ? ratio + 0.5 / static_cast<double>(dim) : ratio},
          {"dropout", dropout}};
}

// Scaling of rotary positions. The older name wins if both are present, as in transformers; `rope`
// is called "rope_parameters" in newer and "rope_scaling" in older versions.
void describe_rope(const ForeignConfig& config, double theta, json& model) {
  const ForeignConfig rope =
      config.inner(config.has("rope_scaling") ? "rope_scaling" : "rope_parameters");
  model["rope_theta"] = rope.number("rope_theta", config.number("rope_theta", theta));
  rope.allow("partial_rotary_factor", {1});
  config.allow("partial_rotary_factor", {1});
  const std::string type_key = rope.has("rope_type") ? "rope_type" : "type";
  rope.allow(type_key, {"default", "linear", "llama3"});
  const std::string type = rope.text(type_key, "default");
  if (type == "default") return;
  model["rope_scaling"] = type;
  model["rope_factor"] = rope.number("factor", 1);
  if (type == "linear") return;
  model["rope_low"] = rope.number("low_freq_factor", 1);
  model["rope_high"] = rope.number("high_freq_factor", 4);
  model["rope_original_positions"] = rope.integer("original_max_position_embeddings");
}

// Defaults for keys that a configuration of Llama's family leaves out.
struct FamilyDefaults {
  std::int64_t hidden, positions;
  double eps, theta;
};

json describe_family(const ForeignConfig& config, const FamilyDefaults& standard,
                     std::int64_t kv_heads) {
  config.allow("hidden_act", {"silu", "swish"});
  const std::int64_t dim = config.integer("hidden_size", 4096);
  const std::int64_t heads = config.integer("num_attention_heads", 32);
  if (heads < 1) config.refuse("num_attention_heads", "1 or more");
  config.allow("head_dim", {dim / heads});
  constexpr std::int64_t kVocabulary = 32000;
  json model = {
      {"vocab_size", config.integer("vocab_size", kVocabulary)},
      {"positions", config.integer("max_position_embeddings", standard.positions)},
      {"dim", dim},
      {"depth", config.integer("num_hidden_layers", 32)},
      {"heads", heads},
      {"kv_heads", config.integer("num_key_value_heads", kv_heads > 0 ? kv_heads : heads)},
      {"hidden", config.integer("intermediate_size", standard.hidden)},
      {"norm_eps", config.number("rms_norm_eps", standard.eps)},
      {"tied", config.flag("tie_word_embeddings", false)}};
  describe_rope(config, standard.theta, model);
  return model;
}

json describe_llama(const ForeignConfig& config) {
  config.allow("attention_bias", {false});
  config.allow("mlp_bias", {false});
  json model =
      describe_family(config, {.hidden = 11008, .positions = 2048, .eps = 1e-6, .theta = 10000}, 0);
  model["name"] = "llama";
  return model;
}

json describe_mixtral(const ForeignConfig& config) {
  config.allow("sliding_window", {nullptr});
  config.allow("attention_dropout", {0});
  config.allow("router_jitter_noise", {0});
  json model =
      describe_family(config, {.hidden = 14336, .positions = 131072, .eps = 1e-5, .theta = 1e6}, 8);
  model["name"] = "mixtral";
  model["experts"] = config.integer("num_local_experts", 8);
  model["experts_per_token"] = config.integer("num_experts_per_tok", 2);
  model["router_aux_loss"] = config.number("router_aux_loss_coef", 0.001);
  return model;
}

}  // namespace

ordered_json language_config(const recipe::Recipe& recipe, const format::WeightSet& weights,
                             std::optional<std::int64_t> end_of_text, std::string_view dtype) {
  const recipe::Model& model = recipe.model;
  ordered_json config;
  if (model.name == "gpt2") {
    config = gpt2_config(model, weights);
  } else if (model.name == "llama") {
    config = llama_config(model, size_of(weights, "model.layers.0.mlp.gate_proj.weight", 0));
  } else if (model.name == "mixtral") {
    config = mixtral_config(model, weights);
  } else {
    throw core::UsageError(
        "--to huggingface",
        fmt::format(
            "transformers has no {} with these tensors; gpt2, llama and mixtral can be exported",
            model.name),
        "export it as timm, torchvision, pt or safetensors");
  }
  // transformers' defaults are numbers in another vocabulary.
  config["bos_token_id"] = end_of_text ? ordered_json(*end_of_text) : ordered_json();
  config["eos_token_id"] = config["bos_token_id"];
  config["dtype"] = torch_name(dtype);
  config["torch_dtype"] = config["dtype"];  // name in version 4
  return config;
}

std::string language_prefix(const recipe::Model& model) {
  return model.name == "gpt2" ? "transformer." : "";
}

Described describe_language_config(const ForeignConfig& config) {
  const std::string type = config.text("model_type");
  Described result;
  if (type == "gpt2") {
    result.model = describe_gpt2(config);
  } else if (type == "llama") {
    result.model = describe_llama(config);
  } else if (type == "mixtral") {
    result.model = describe_mixtral(config);
  } else {
    config.refuse("model_type", R"("gpt2", "llama" or "mixtral")");
  }
  result.data = json::object();
  return result;
}

}  // namespace scaletrain::exchange
