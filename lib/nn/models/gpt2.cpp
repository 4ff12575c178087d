// GPT-2 of any size, with the tensor names, the initialisation and the layouts of Hugging Face's
// GPT2LMHeadModel (those of its published files: "h.0.ln_1.weight").
//
// Radford et al., Language Models are Unsupervised Multitask Learners, 2019, section 2.3; the head
// is the token embedding, its products written [in, out] as in the original.
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <torch/nn/modules/container/modulelist.h>

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/nn/layers/activations.h"
#include "lib/nn/layers/attention.h"
#include "lib/nn/layers/dropout.h"
#include "lib/nn/layers/embedding.h"
#include "lib/nn/layers/linear.h"
#include "lib/nn/layers/norm.h"
#include "lib/nn/model.h"
#include "lib/units/cache.h"

namespace scaletrain::nn {
namespace {

using at::Tensor;
using units::Context;
using units::Flow;

constexpr double kGpt2Std = 0.02;
constexpr double kEps = 1e-5;

struct Gpt2Config {
  std::int64_t vocabulary = 0, positions = 0, dim = 0, depth = 0, heads = 0, hidden = 0;
  double dropout = 0;

  std::int64_t head_dim() const { return dim / heads; }
};

std::shared_ptr<Linear> make_product(std::int64_t in, std::int64_t out) {
  return std::make_shared<Linear>(Linear::Options{.in = in, .out = out, .inputs_first = true});
}

class Gpt2Attention : public torch::nn::Module {
 public:
  explicit Gpt2Attention(const Gpt2Config& config)
      : qkv_(register_module("c_attn", make_product(config.dim, 3 * config.dim))),
        mix_(register_module(
            "mix", std::make_shared<Attention>(Attention::Options{
                       .head_dim = config.head_dim(), .causal = true, .dropout = config.dropout}))),
        proj_(register_module("c_proj", make_product(config.dim, config.dim))),
        dropout_(register_module("resid_dropout", std::make_shared<Dropout>(config.dropout))) {}

  // [batch, tokens, dim] -> the same.
  Tensor forward(const Tensor& input, const Context& context) {
    return dropout_->forward(proj_->forward(mix_->forward(qkv_->forward(input), context)));
  }

 private:
  std::shared_ptr<Linear> qkv_;
  std::shared_ptr<Attention> mix_;
  std::shared_ptr<Linear> proj_;
  std::shared_ptr<Dropout> dropout_;
};

class Gpt2Mlp : public torch::nn::Module {
 public:
  explicit Gpt2Mlp(const Gpt2Config& config)
      : fc_(register_module("c_fc", make_product(config.dim, config.hidden))),
        proj_(register_module("c_proj", make_product(config.hidden, config.dim))),
        dropout_(register_module("dropout", std::make_shared<Dropout>(config.dropout))) {}

  Tensor forward(const Tensor& input) {
    const Tensor hidden = tanh_gelu(fc_->forward(input));
    return dropout_->forward(proj_->forward(hidden));
  }

 private:
  std::shared_ptr<Linear> fc_, proj_;
  std::shared_ptr<Dropout> dropout_;
};

class Gpt2Block : public torch::nn::Module {
 public:
  explicit Gpt2Block(const Gpt2Config& config)
      : norm1_(register_module("ln_1", std::make_shared<LayerNorm>(config.dim, kEps))),
        attention_(register_module("attn", std::make_shared<Gpt2Attention>(config))),
        norm2_(register_module("ln_2", std::make_shared<LayerNorm>(config.dim, kEps))),
        mlp_(register_module("mlp", std::make_shared<Gpt2Mlp>(config))) {}

  Tensor forward(const Tensor& input, const Context& context) {
    const auto [stream, first] = norm1_->forward_sum(input);
    const auto [attended, second] =
        norm2_->forward_sum(stream, attention_->forward(first, context));
    return attended + mlp_->forward(second);
  }

 private:
  std::shared_ptr<LayerNorm> norm1_;
  std::shared_ptr<Gpt2Attention> attention_;
  std::shared_ptr<LayerNorm> norm2_;
  std::shared_ptr<Gpt2Mlp> mlp_;
};

class Gpt2 : public Model {
 public:
  explicit Gpt2(const Gpt2Config& config)
      : dropout_(config.dropout),
        heads_(config.heads),
        head_dim_(config.head_dim()),
        last_std_(kGpt2Std / std::sqrt(2 * static_cast<double>(config.depth))),
        tokens_(register_module("wte", std::make_shared<Embedding>(config.vocabulary, config.dim))),
        positions_(
            register_module("wpe", std::make_shared<Embedding>(config.positions, config.dim))) {
    torch::nn::ModuleList blocks;
    for (std::int64_t i = 0; i < config.depth; ++i) {
      blocks_.push_back(std::make_shared<Gpt2Block>(config));
      blocks->push_back(blocks_.back());
    }
    register_module("h", blocks);
    norm_ = register_module("ln_f", std::make_shared<LayerNorm>(config.dim, kEps));
  }

  std::vector<units::Unit> units() override {
    std::vector<units::Unit> result;
    result.reserve(blocks_.size() + 2);
    result.push_back(
        unit("stem", {"wte", "wpe"}, [this](const Flow& input, const Context& context) -> Flow {
          const Tensor sum = tokens_->forward(input[0]) + places(input[0].size(1), context);
          return {at::dropout(sum, dropout_, is_training())};
        }));
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      const std::string name = fmt::format("h.{}", i);
      result.push_back(
          unit(name, {name}, [this, i](const Flow& input, const Context& context) -> Flow {
            return {blocks_[i]->forward(input[0], context)};
          }));
    }
    result.push_back(
        unit("head", {"ln_f", "wte"}, [this](const Flow& input, const Context&) -> Flow {
          return {tokens_->scores(norm_->forward(input[0]))};
        }));
    result.back().takes_tokens_alone = true;
    return result;
  }

  // As Hugging Face's _init_weights(): weights that add to the residual stream are initialised
  // smaller the deeper the model is.
  void initialise(const std::string& name, const Tensor& logical,
                  at::Generator generator) const override {
    if (logical.dim() == 2) {
      logical.normal_(0, name.ends_with("c_proj.weight") ? last_std_ : kGpt2Std,
                      std::move(generator));
    } else if (name.ends_with(".bias")) {
      logical.zero_();
    } else {
      Model::initialise(name, logical, std::move(generator));
    }
  }

  std::vector<units::TensorRule> tensor_plan() const override {
    using enum units::TensorStyle;
    return {
        {.pattern = "wte.weight", .style = kVocabulary},
        {.pattern = "h.*.ln_*", .style = kEntry},
        {.pattern = "h.*.attn.c_attn.weight",
         .style = kColumn,
         .dimension = 1,
         .parts = 3,
         .together = head_dim_},
        {.pattern = "h.*.attn.c_attn.bias", .style = kColumn, .parts = 3, .together = head_dim_},
        {.pattern = "h.*.attn.mix", .style = kHead},
        {.pattern = "h.*.attn.c_proj.weight", .style = kRow, .together = head_dim_},
        {.pattern = "h.*.mlp.c_fc.weight", .style = kColumn, .dimension = 1},
        {.pattern = "h.*.mlp.c_fc.bias", .style = kColumn},
        {.pattern = "h.*.mlp.c_proj.weight", .style = kRow},
        {.pattern = "ln_f", .style = kEntry},
    };
  }

  units::WeightRules weight_rules() const override {
    return {.positions = "wpe.weight",
            .heads = heads_,
            .heads_name = "n_head",
            .also_called = {{"lm_head.weight", "wte.weight"}}};
  }

 private:
  // Returns the position embeddings: [tokens, dim], or [batch, tokens, dim].
  Tensor places(std::int64_t tokens, const Context& context) const {
    if (context.positions.defined()) return positions_->forward(context.positions);
    return positions_->rows(context.cache ? context.cache->length() : 0, tokens);
  }

  double dropout_;
  std::int64_t heads_, head_dim_;
  double last_std_;
  std::shared_ptr<Embedding> tokens_, positions_;
  std::vector<std::shared_ptr<Gpt2Block>> blocks_;
  std::shared_ptr<LayerNorm> norm_;
};

}  // namespace

std::shared_ptr<Model> make_gpt2(const recipe::Model& model, std::int64_t /*image_size*/) {
  const std::int64_t dim = model.integer("dim");
  return std::make_shared<Gpt2>(Gpt2Config{
      .vocabulary = model.integer("vocab_size"),
      .positions = model.integer("positions"),
      .dim = dim,
      .depth = model.integer("depth"),
      .heads = model.integer("heads"),
      .hidden = static_cast<std::int64_t>(static_cast<double>(dim) * model.number("mlp_ratio")),
      .dropout = model.number("dropout"),
  });
}

}  // namespace scaletrain::nn
