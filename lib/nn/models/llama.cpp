// A Llama-style decoder of any size, with the tensor names, the initialisation and the layouts of
// Hugging Face's LlamaForCausalLM.
//
// Touvron et al., LLaMA, 2023, section 2.2: RMSNorm in front of every part, SwiGLU (Shazeer, GLU
// Variants Improve Transformer, 2020), rotary positions, no biases; grouped queries as in Llama 2.
#include "lib/nn/models/llama.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <torch/nn/modules/container/modulelist.h>

#include <utility>

#include "lib/core/error.h"
#include "lib/nn/layers/activations.h"
#include "lib/nn/layers/attention.h"
#include "lib/nn/layers/embedding.h"
#include "lib/nn/layers/rms_norm.h"
#include "lib/units/cache.h"

namespace scaletrain::nn {
namespace {

using at::Tensor;
using units::Context;
using units::Flow;

constexpr double kLlamaStd = 0.02;
constexpr std::int64_t kHiddenMultiple = 256;

}  // namespace

class LlamaAttention : public torch::nn::Module {
 public:
  LlamaAttention(const LlamaConfig& config, std::shared_ptr<Rotary> rotary)
      : head_dim_(config.head_dim()),
        rotary_(std::move(rotary)),
        q_(register_module("q_proj", make_projection(config.dim, config.dim))),
        k_(register_module("k_proj", make_projection(config.dim, config.kv_heads * head_dim_))),
        v_(register_module("v_proj", make_projection(config.dim, config.kv_heads * head_dim_))),
        mix_(register_module("mix", std::make_shared<Attention>(Attention::Options{
                                        .head_dim = head_dim_, .causal = true}))),
        o_(register_module("o_proj", make_projection(config.dim, config.dim))) {}

  // [batch, tokens, dim] -> the same.
  Tensor forward(const Tensor& input, const Context& context) {
    // Attention depends on distances only, so the positions of a document need not begin at 0.
    const Tensor queries = turn(heads_of(q_->forward(input)), context);
    const Tensor keys = turn(heads_of(k_->forward(input)), context);
    return o_->forward(mix_->forward(queries, keys, heads_of(v_->forward(input)), context));
  }

 private:
  Tensor turn(const Tensor& heads, const Context& context) {
    if (context.places.defined()) return rotary_->forward(heads, context.places);
    return rotary_->forward(heads, context.cache ? context.cache->length() : 0);
  }

  // [batch, tokens, heads * head_dim] -> [batch, heads, tokens, head_dim].
  Tensor heads_of(const Tensor& flat) const {
    return flat.unflatten(-1, {-1, head_dim_}).transpose(1, 2);
  }

  std::int64_t head_dim_;
  std::shared_ptr<Rotary> rotary_;
  std::shared_ptr<Linear> q_, k_, v_;
  std::shared_ptr<Attention> mix_;
  std::shared_ptr<Linear> o_;
};

class LlamaMlp : public FeedForward {
 public:
  explicit LlamaMlp(const LlamaConfig& config)
      : gate_(register_module("gate_proj", make_projection(config.dim, config.hidden))),
        up_(register_module("up_proj", make_projection(config.dim, config.hidden))),
        down_(register_module("down_proj", make_projection(config.hidden, config.dim))) {}

  Flow forward(Flow flow, const Context& /*context*/) override {
    flow[0] = down_->forward(swiglu(gate_->forward(flow[0]), up_->forward(flow[0])));
    return flow;
  }

 private:
  std::shared_ptr<Linear> gate_, up_, down_;
};

class LlamaBlock : public torch::nn::Module {
 public:
  LlamaBlock(const LlamaConfig& config, std::shared_ptr<Rotary> rotary, const std::string& name,
             std::shared_ptr<FeedForward> feed_forward)
      : norm1_(
            register_module("input_layernorm", std::make_shared<RmsNorm>(config.dim, config.eps))),
        attention_(register_module("self_attn",
                                   std::make_shared<LlamaAttention>(config, std::move(rotary)))),
        norm2_(register_module("post_attention_layernorm",
                               std::make_shared<RmsNorm>(config.dim, config.eps))),
        mlp_(register_module(name, std::move(feed_forward))) {}

  Flow forward(Flow flow, const Context& context) {
    const Tensor attended = flow[0] + attention_->forward(norm1_->forward(flow[0]), context);
    flow[0] = norm2_->forward(attended);
    flow = mlp_->forward(std::move(flow), context);
    flow[0] = attended + flow[0];
    return flow;
  }

 private:
  std::shared_ptr<RmsNorm> norm1_;
  std::shared_ptr<LlamaAttention> attention_;
  std::shared_ptr<RmsNorm> norm2_;
  std::shared_ptr<FeedForward> mlp_;
};

// Hugging Face's "model": all but the head.
class LlamaTrunk : public torch::nn::Module {
 public:
  LlamaTrunk(const LlamaConfig& config, const FeedForwards& feed_forwards)
      : tokens(register_module("embed_tokens",
                               std::make_shared<Embedding>(config.vocabulary, config.dim))) {
    const auto rotary = std::make_shared<Rotary>(Rotary::Options{.head_dim = config.head_dim(),
                                                                 .positions = config.positions,
                                                                 .theta = config.theta,
                                                                 .scaling = config.scaling});
    torch::nn::ModuleList layers;
    blocks.reserve(static_cast<std::size_t>(config.depth));
    for (std::int64_t i = 0; i < config.depth; ++i) {
      blocks.push_back(
          std::make_shared<LlamaBlock>(config, rotary, feed_forwards.name, feed_forwards.make(i)));
      layers->push_back(blocks.back());
    }
    register_module("layers", layers);
    norm = register_module("norm", std::make_shared<RmsNorm>(config.dim, config.eps));
  }

  std::shared_ptr<Embedding> tokens;
  std::vector<std::shared_ptr<LlamaBlock>> blocks;
  std::shared_ptr<RmsNorm> norm;
};

Llama::Llama(const LlamaConfig& config, const FeedForwards& feed_forwards)
    : heads_(config.heads),
      head_dim_(config.head_dim()),
      trunk_(register_module("model", std::make_shared<LlamaTrunk>(config, feed_forwards))) {
  if (!config.tied) {
    head_ = register_module("lm_head", make_projection(config.dim, config.vocabulary));
  }
}

std::vector<units::Unit> Llama::units() {
  std::vector<units::Unit> result;
  result.reserve(trunk_->blocks.size() + 2);
  result.push_back(
      unit("stem", {"model.embed_tokens"}, [this](const Flow& input, const Context&) -> Flow {
        return {trunk_->tokens->forward(input[0])};
      }));
  for (std::size_t i = 0; i < trunk_->blocks.size(); ++i) {
    const std::string name = fmt::format("model.layers.{}", i);
    result.push_back(unit(name, {name}, [this, i](Flow flow, const Context& context) {
      return trunk_->blocks[i]->forward(std::move(flow), context);
    }));
  }
  result.push_back(unit("head", {"model.norm", head_ ? "lm_head" : "model.embed_tokens"},
                        [this](Flow flow, const Context&) {
                          const Tensor last = trunk_->norm->forward(flow[0]);
                          flow[0] = head_ ? head_->forward(last) : trunk_->tokens->scores(last);
                          return flow;
                        }));
  result.back().takes_tokens_alone = true;
  return result;
}

void Llama::initialise(const std::string& name, const Tensor& logical,
                       at::Generator generator) const {
  if (logical.dim() == 2) {
    logical.normal_(0, kLlamaStd, std::move(generator));
  } else {
    Model::initialise(name, logical, std::move(generator));
  }
}

std::vector<units::TensorRule> Llama::tensor_plan() const {
  using enum units::TensorStyle;
  return {
      {.pattern = "model.embed_tokens.weight", .style = kVocabulary},
      {.pattern = "model.layers.*_layernorm", .style = kEntry},
      {.pattern = "model.layers.*.self_attn.o_proj.weight",
       .style = kRow,
       .dimension = 1,
       .together = head_dim_},
      {.pattern = "model.layers.*.self_attn.*_proj.weight",
       .style = kColumn,
       .together = head_dim_},
      {.pattern = "model.layers.*.self_attn.mix", .style = kHead},
      {.pattern = "model.layers.*.mlp.down_proj.weight", .style = kRow, .dimension = 1},
      {.pattern = "model.layers.*.mlp.*_proj.weight", .style = kColumn},
      {.pattern = "model.norm", .style = kEntry},
      {.pattern = "lm_head.weight", .style = kVocabulary},
  };
}

units::WeightRules Llama::weight_rules() const {
  units::WeightRules rules{.heads = heads_, .heads_name = "num_attention_heads"};
  if (!head_) rules.also_called = {{"lm_head.weight", "model.embed_tokens.weight"}};
  return rules;
}

std::shared_ptr<Linear> make_projection(std::int64_t in, std::int64_t out) {
  return std::make_shared<Linear>(Linear::Options{.in = in, .out = out, .bias = false});
}

namespace {

RotaryScaling scaling_of(const recipe::Model& model) {
  const std::string& kind = model.text("rope_scaling");
  return {.kind = kind == "linear"   ? RotaryScaling::Kind::kLinear
                  : kind == "llama3" ? RotaryScaling::Kind::kLlama3
                                     : RotaryScaling::Kind::kNone,
          .factor = model.number("rope_factor"),
          .low = model.number("rope_low"),
          .high = model.number("rope_high"),
          .original = model.integer("rope_original_positions")};
}

// Hidden size as in LLaMA: two thirds of GPT's, since there are three matrices, rounded up to a
// multiple.
std::int64_t hidden_of(const recipe::Model& model, std::int64_t dim) {
  const std::int64_t asked = model.integer("hidden");
  if (asked > 0) return asked;
  const std::int64_t plain = 8 * dim / 3;
  return (plain + kHiddenMultiple - 1) / kHiddenMultiple * kHiddenMultiple;
}

}  // namespace

LlamaConfig llama_config(const recipe::Model& model) {
  const std::int64_t dim = model.integer("dim");
  const LlamaConfig config{.vocabulary = model.integer("vocab_size"),
                           .positions = model.integer("positions"),
                           .dim = dim,
                           .depth = model.integer("depth"),
                           .heads = model.integer("heads"),
                           .kv_heads = model.integer("kv_heads"),
                           .hidden = hidden_of(model, dim),
                           .eps = model.number("norm_eps"),
                           .theta = model.number("rope_theta"),
                           .scaling = scaling_of(model),
                           .tied = model.flag("tied")};
  if (config.head_dim() % 2 != 0) {
    throw core::RecipeError(
        "/model/heads",
        fmt::format("a head is {} wide, and rotary positions need pairs", config.head_dim()),
        "use heads of an even width");
  }
  return config;
}

std::shared_ptr<Model> make_llama(const recipe::Model& model, std::int64_t /*image_size*/) {
  const LlamaConfig config = llama_config(model);
  return std::make_shared<Llama>(config, FeedForwards{"mlp", [&](std::int64_t) {
                                                        return std::make_shared<LlamaMlp>(config);
                                                      }});
}

}  // namespace scaletrain::nn
