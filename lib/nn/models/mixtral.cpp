// A mixture-of-experts decoder of any size: Llama's decoder with the experts, the tensor names, the
// initialisation and the layouts of Hugging Face's MixtralForCausalLM.
//
// Jiang et al., Mixtral of Experts, 2024. The load of the experts is balanced by an auxiliary loss
// (Fedus et al., Switch Transformers, 2021), or by a bias that affects only the choice of experts,
// not their weights (Wang et al., Auxiliary-Loss-Free Load Balancing, 2024); the bias has the name
// of DeepSeek-V3's and MiniMax-M2's files.
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <torch/nn/modules/container/modulelist.h>

#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/nn/experts/divided_experts.h"
#include "lib/nn/experts/routing.h"
#include "lib/nn/layers/activations.h"
#include "lib/nn/models/llama.h"
#include "lib/units/widened.h"

namespace scaletrain::nn {
namespace {

using at::Tensor;
using units::Context;
using units::Flow;

struct ExpertsConfig {
  std::int64_t dim = 0, hidden = 0, blocks = 0;
  std::int64_t experts = 0, choices = 0;
  double capacity_factor = 0, balance_loss = 0, bias_rate = 0;
};

class Expert : public torch::nn::Module {
 public:
  explicit Expert(const ExpertsConfig& config)
      : gate_(register_module("w1", make_projection(config.dim, config.hidden))),
        down_(register_module("w2", make_projection(config.hidden, config.dim))),
        up_(register_module("w3", make_projection(config.dim, config.hidden))) {}

  // [rows, dim] -> the same shape. Without rows the gradients of the weights are 0.
  Tensor forward(const Tensor& rows) {
    return down_->forward(swiglu(gate_->forward(rows), up_->forward(rows)));
  }

 private:
  std::shared_ptr<Linear> gate_, down_, up_;
};

// Counters of MixtralExperts, stored after the number of tokens that chose each expert.
enum Counted : std::int64_t { kDropped, kBalanceLoss, kBatches, kCounted };

class MixtralExperts : public FeedForward, public ExpertLayer {
 public:
  MixtralExperts(const ExpertsConfig& config, bool is_last)
      : config_(config),
        is_last_(is_last),
        gate_(register_module("gate", make_projection(config.dim, config.experts))) {
    torch::nn::ModuleList experts;
    for (std::int64_t i = 0; i < config.experts; ++i) {
      experts_.push_back(std::make_shared<Expert>(config));
      experts->push_back(experts_.back());
    }
    register_module("experts", experts);
    if (config.bias_rate > 0) {
      bias_ = register_buffer("e_score_correction_bias", at::zeros({config.experts}));
    }
  }

  Flow forward(Flow flow, const Context& context) override {
    const Tensor tokens = flow[0].flatten(0, -2);
    const Tensor probabilities = units::widened(gate_->forward(tokens)).softmax(-1);
    const std::int64_t capacity =
        is_training()
            ? capacity_of(config_.capacity_factor, tokens.size(0), config_.choices, config_.experts)
            : 0;
    const Routing routing = route(probabilities, config_.choices, bias_, capacity);
    const Tensor rows = to_experts(tokens, routing);
    flow[0] = from_experts(answers(rows, routing), routing).view_as(flow[0]);
    if (sum_parts_) flow[0] = sum_parts_(flow[0]);
    if (!is_training()) return flow;
    if (config_.balance_loss > 0) balance(routing, probabilities, flow);
    if (!context.again) count(routing, flow);  // recomputation routes alike
    return flow;
  }

  std::int64_t experts() const override { return config_.experts; }
  void divide(units::ExpertCut cut) override { cut_ = std::move(cut); }
  void cut_experts(units::Exchange sum, int ranks) override {
    sum_parts_ = std::move(sum);
    parts_ = ranks;
  }
  void share_tokens(units::Exchange sum, int ranks) override {
    sum_tokens_ = std::move(sum);
    token_ranks_ = ranks;
  }

  // Returns the counts of the batches since the last call, [experts + kCounted] doubles.
  Tensor take() {
    const Tensor counted = std::exchange(counted_, {});
    return counted.defined() ? counted
                             : at::zeros({config_.experts + kCounted},
                                         gate_->parameters().front().options().dtype(at::kDouble));
  }

  // Updates the bias, if there is one, by the counts of all ranks.
  void balance_by(const Tensor& chosen) {
    if (bias_.defined()) bias_.copy_(moved_bias(bias_, chosen, config_.bias_rate));
  }

 private:
  Tensor answers(const Tensor& rows, const Routing& routing) {
    if (cut_) {
      return answers_of_ranks(rows, routing.rows, *cut_, [this](std::size_t i, const Tensor& own) {
        return experts_[i]->forward(own);
      });
    }
    const std::vector<Tensor> parts = rows.split_with_sizes(routing.rows);
    std::vector<Tensor> answers;
    answers.reserve(parts.size());
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (routing.rows[i] == 0 && !at::GradMode::is_enabled()) continue;
      answers.push_back(experts_[i]->forward(parts[i]));
    }
    return answers.empty() ? rows : at::cat(answers);
  }

  // Returns its input; backward divides the gradient by `parts_`, since each of the ranks with
  // parts of the experts has the full gradient.
  Tensor gradient_part(const Tensor& probabilities) const {
    if (parts_ == 1) return probabilities;
    const Tensor plain = probabilities.detach();
    return plain + (probabilities - plain) / parts_;
  }

  // Adds this block's sums to those of earlier blocks; the last block computes the loss from them.
  void balance(const Routing& routing, const Tensor& probabilities, Flow& flow) const {
    Tensor own = at::stack(
        {routing.chosen.to(probabilities.scalar_type()), gradient_part(probabilities).sum(0)});
    if (sum_tokens_) own = sum_tokens_(own);
    const Tensor sums = flow.size() > 1 ? flow[1] + own : own;
    flow.resize(2);
    const std::int64_t tokens = probabilities.size(0) * token_ranks_;
    flow[1] = is_last_ ? balance_loss(sums, tokens * config_.blocks) * config_.balance_loss : sums;
  }

  void count(const Routing& routing, const Flow& flow) {
    const at::NoGradGuard no_grad;
    const Tensor chosen = routing.chosen.to(at::kDouble), zero = at::zeros({}, chosen.options());
    const auto rows = std::accumulate(routing.rows.begin(), routing.rows.end(), std::int64_t{0});
    const bool has_loss = is_last_ && flow.size() > 1;
    const Tensor counted = at::cat(
        {chosen,
         at::stack({chosen.sum() - rows,
                    has_loss ? flow[1].to(at::kDouble) / config_.balance_loss : zero, zero + 1})});
    counted_ = counted_.defined() ? counted_ + counted : counted;
  }

  ExpertsConfig config_;
  bool is_last_;
  std::shared_ptr<Linear> gate_;
  std::vector<std::shared_ptr<Expert>> experts_;
  std::optional<units::ExpertCut> cut_;  // nullopt: this rank has all experts
  units::Exchange sum_parts_;            // empty: they are whole
  int parts_ = 1;                        // ranks that have one of each
  units::Exchange sum_tokens_;           // empty: this rank has all of its sequences
  int token_ranks_ = 1;                  // ranks that share the sequences
  Tensor bias_;                          // undefined: experts are chosen by the probabilities only
  Tensor counted_;                       // see take(); undefined: nothing counted yet
};

using Blocks = std::vector<std::shared_ptr<MixtralExperts>>;

class Mixtral : public Llama {
 public:
  Mixtral(const LlamaConfig& llama, const ExpertsConfig& config, Blocks blocks)
      : Llama(llama, {.name = "block_sparse_moe",
                      .make = [&](std::int64_t i) { return blocks[static_cast<std::size_t>(i)]; }}),
        config_(config),
        blocks_(std::move(blocks)) {}

  std::vector<units::TensorRule> tensor_plan() const override {
    using enum units::TensorStyle;
    std::vector<units::TensorRule> plan = Llama::tensor_plan();
    const std::string experts = "model.layers.*.block_sparse_moe.experts.*";
    plan.push_back({.pattern = experts + ".w2.weight", .style = kRow, .dimension = 1});
    plan.push_back({.pattern = experts + ".weight", .style = kColumn});
    return plan;
  }

  std::vector<std::string> statistics() const override {
    std::vector<std::string> names;
    if (config_.balance_loss > 0) names.emplace_back("balance_loss");
    for (std::int64_t i = 0; i < config_.blocks; ++i) {
      names.push_back(fmt::format("busiest_share.{}", i));
    }
    if (config_.capacity_factor > 0) {
      for (std::int64_t i = 0; i < config_.blocks; ++i) {
        names.push_back(fmt::format("dropped_share.{}", i));
      }
    }
    return names;
  }

  Tensor end_step(const std::function<void(const Tensor&)>& sum_over_ranks) override {
    std::vector<Tensor> own;
    own.reserve(blocks_.size());
    for (const auto& block : blocks_) own.push_back(block->take());
    const Tensor all = at::stack(own);
    if (sum_over_ranks) sum_over_ranks(all);
    const Tensor chosen = all.narrow(1, 0, config_.experts);
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      blocks_[i]->balance_by(chosen[static_cast<std::int64_t>(i)]);
    }
    const Tensor others = all.narrow(1, config_.experts, kCounted);
    const Tensor choices = chosen.sum(1).clamp_min(1);
    std::vector<Tensor> result;
    if (config_.balance_loss > 0) {
      const Tensor last = others[-1];
      result.push_back((last[kBalanceLoss] / last[kBatches].clamp_min(1)).view({1}));
    }
    result.push_back(chosen.amax(1) / choices);
    if (config_.capacity_factor > 0) result.push_back(others.select(1, kDropped) / choices);
    return at::cat(result);
  }

 private:
  ExpertsConfig config_;
  Blocks blocks_;
};

}  // namespace

std::shared_ptr<Model> make_mixtral(const recipe::Model& model, std::int64_t /*image_size*/) {
  const LlamaConfig llama = llama_config(model);
  const ExpertsConfig config{.dim = llama.dim,
                             .hidden = llama.hidden,
                             .blocks = llama.depth,
                             .experts = model.integer("experts"),
                             .choices = model.integer("experts_per_token"),
                             .capacity_factor = model.number("capacity_factor"),
                             .balance_loss = model.number("router_aux_loss"),
                             .bias_rate = model.number("router_bias_rate")};
  Blocks blocks;
  for (std::int64_t i = 0; i < config.blocks; ++i) {
    blocks.push_back(std::make_shared<MixtralExperts>(config, i + 1 == config.blocks));
  }
  return std::make_shared<Mixtral>(llama, config, std::move(blocks));
}

}  // namespace scaletrain::nn
