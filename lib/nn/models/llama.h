// Decoder of Llama and Mixtral. Their feed-forward part differs: a dense MLP in Llama, a mixture of
// experts in Mixtral.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lib/nn/layers/linear.h"
#include "lib/nn/layers/rotary.h"
#include "lib/nn/model.h"

namespace scaletrain::nn {

struct LlamaConfig {
  std::int64_t vocabulary = 0, positions = 0, dim = 0, depth = 0, heads = 0, kv_heads = 0,
               hidden = 0;
  double eps = 0, theta = 0;
  RotaryScaling scaling;
  bool tied = false;

  std::int64_t head_dim() const { return dim / heads; }
};

// Reads the configuration from a recipe. Throws core::RecipeError for heads of an odd width.
LlamaConfig llama_config(const recipe::Model& model);

// Makes a linear layer without a bias, as these models use.
std::shared_ptr<Linear> make_projection(std::int64_t in, std::int64_t out);

// Feed-forward part of a block, after its second norm.
class FeedForward : public torch::nn::Module {
 public:
  // Takes `flow`[0] [batch, tokens, dim]; returns the block's addition to the residual stream, and
  // the other values that flow from block to block.
  virtual units::Flow forward(units::Flow flow, const units::Context& context) = 0;
};

struct FeedForwards {
  std::string name;  // module name in its block
  std::function<std::shared_ptr<FeedForward>(std::int64_t block)> make;
};

class LlamaTrunk;

class Llama : public Model {
 public:
  Llama(const LlamaConfig& config, const FeedForwards& feed_forwards);

  std::vector<units::Unit> units() override;
  // Initialises like Hugging Face's _init_weights().
  void initialise(const std::string& name, const at::Tensor& logical,
                  at::Generator generator) const override;
  // Tensor-parallel rules of all layers of Llama.
  std::vector<units::TensorRule> tensor_plan() const override;
  units::WeightRules weight_rules() const override;

 private:
  std::int64_t heads_, head_dim_;
  std::shared_ptr<LlamaTrunk> trunk_;
  std::shared_ptr<Linear> head_;  // null: tied to the embedding
};

}  // namespace scaletrain::nn
