#include "lib/exchange/language_config.h"

#include <fmt/format.h>

#include "lib/core/error.h"

namespace scaletrain::exchange {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

// What our models have fixed (lib/nn/models/gpt2.cpp).
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

ordered_json llama_config(const recipe::Model& model, const format::WeightSet& weights) {
  return {{"architectures", {"LlamaForCausalLM"}},
          {"model_type", "llama"},
          {"vocab_size", model.integer("vocab_size")},
          {"max_position_embeddings", model.integer("positions")},
          {"hidden_size", model.integer("dim")},
          {"intermediate_size", size_of(weights, "model.layers.0.mlp.gate_proj.weight", 0)},
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

// How rotary positions are stretched; `rope` is what newer versions call "rope_parameters" and
// older ones "rope_scaling".
void describe_rope(const ForeignConfig& config, json& model) {
  const ForeignConfig rope =
      config.inner(config.has("rope_parameters") ? "rope_parameters" : "rope_scaling");
  constexpr double kTheta = 10000;
  model["rope_theta"] = rope.number("rope_theta", config.number("rope_theta", kTheta));
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

json describe_llama(const ForeignConfig& config) {
  config.allow("hidden_act", {"silu"});
  config.allow("attention_bias", {false});
  config.allow("mlp_bias", {false});
  config.allow("pretraining_tp", {1});
  const std::int64_t dim = config.integer("hidden_size", 4096);
  const std::int64_t heads = config.integer("num_attention_heads", 32);
  if (heads < 1) config.refuse("num_attention_heads", "1 or more");
  config.allow("head_dim", {dim / heads});
  constexpr std::int64_t kHidden = 11008, kPositions = 2048, kVocabulary = 32000;
  constexpr double kEps = 1e-6;
  json model = {{"name", "llama"},
                {"vocab_size", config.integer("vocab_size", kVocabulary)},
                {"positions", config.integer("max_position_embeddings", kPositions)},
                {"dim", dim},
                {"depth", config.integer("num_hidden_layers", 32)},
                {"heads", heads},
                {"kv_heads", config.integer("num_key_value_heads", heads)},
                {"hidden", config.integer("intermediate_size", kHidden)},
                {"norm_eps", config.number("rms_norm_eps", kEps)},
                {"tied", config.flag("tie_word_embeddings", false)}};
  describe_rope(config, model);
  return model;
}

}  // namespace

ordered_json language_config(const recipe::Recipe& recipe, const format::WeightSet& weights,
                             std::optional<std::int64_t> end_of_text, std::string_view dtype) {
  const recipe::Model& model = recipe.model;
  if (model.name != "gpt2" && model.name != "llama") {
    throw core::UsageError("--to huggingface",
                           fmt::format("transformers has no {} with these tensors: it has our gpt2 "
                                       "and llama",
                                       model.name),
                           "export it as timm, torchvision, pt or safetensors");
  }
  ordered_json config =
      model.name == "gpt2" ? gpt2_config(model, weights) : llama_config(model, weights);
  // Its own defaults are numbers of another vocabulary.
  config["bos_token_id"] = end_of_text ? ordered_json(*end_of_text) : ordered_json();
  config["eos_token_id"] = config["bos_token_id"];
  config["dtype"] = torch_name(dtype);
  config["torch_dtype"] = config["dtype"];  // what version 4 calls it
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
  } else {
    config.refuse("model_type", R"("gpt2" or "llama")");
  }
  result.data = json::object();
  return result;
}

}  // namespace scaletrain::exchange
