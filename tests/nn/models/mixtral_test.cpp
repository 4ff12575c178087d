#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <vector>

#include "lib/nn/experts/divided_experts.h"
#include "lib/nn/model.h"
#include "lib/units/cache.h"
#include "tests/nn/recipes.h"

namespace scaletrain::nn {
namespace {

using Options = std::vector<std::pair<std::string, recipe::Model::Value>>;

std::shared_ptr<Model> mixtral(const Options& options = {}) {
  auto recipe = model_recipe("mixtral");
  recipe.options["hidden"] = std::int64_t{24};
  recipe.options["experts"] = std::int64_t{4};
  for (const auto& [key, value] : options) recipe.options[key] = value;
  return make_model(recipe, 0, 1);
}

// All that the last unit gives.
units::Flow flow_of(Model& model, const at::Tensor& tokens, const units::Context& context = {}) {
  const auto units = model.units();
  return units::run(units, {tokens}, context);
}

at::Tensor tokens() { return at::arange(16).remainder(10).view({2, 8}); }

const char* const kBias = "model.layers.1.block_sparse_moe.e_score_correction_bias";

}  // namespace

TEST_CASE("mixtral has the tensors of Mixtral's files") {
  const auto parameters = mixtral()->named_parameters();
  // Embedding, last norm and head; of each block two norms, four projections, the router and three
  // matrices of each expert.
  CHECK(parameters.size() == 3 + 2 * (2 + 4 + 1 + 4 * 3));
  const std::string experts = "model.layers.1.block_sparse_moe.";
  CHECK(parameters[experts + "gate.weight"].sizes() == at::IntArrayRef({4, 16}));
  CHECK(parameters[experts + "experts.3.w1.weight"].sizes() == at::IntArrayRef({24, 16}));
  CHECK(parameters[experts + "experts.3.w2.weight"].sizes() == at::IntArrayRef({16, 24}));
  CHECK(parameters[experts + "experts.3.w3.weight"].sizes() == at::IntArrayRef({24, 16}));
  CHECK(mixtral()->named_buffers().is_empty());
  CHECK(mixtral({{"router_bias_rate", 0.1}})->named_buffers().contains(kBias));
}

TEST_CASE("an auxiliary loss is there in training alone, and where it weighs anything") {
  const auto model = mixtral({{"router_aux_loss", 0.5}});
  const units::Flow flow = flow_of(*model, tokens());
  REQUIRE(flow.size() == 2);
  CHECK(flow[1].dim() == 0);
  // At least 0.5 where experts are even; the router begins near that: 2 choices for each token.
  CHECK(flow[1].item<double>() == doctest::Approx(0.5 * 2).epsilon(0.1));
  model->eval();
  CHECK(flow_of(*model, tokens()).size() == 1);
  CHECK(flow_of(*mixtral({{"router_aux_loss", 0.0}}), tokens()).size() == 1);
}

TEST_CASE("experts that no token chooses have gradients of zero, not none") {
  const auto model =
      mixtral({{"experts", std::int64_t{16}}, {"experts_per_token", std::int64_t{1}}});
  // One token: 15 of 16 experts have no row.
  flow_of(*model, at::ones({1, 1}, at::kLong))[0].sum().backward();
  int zero = 0;
  for (const auto& item : model->named_parameters()) {
    CAPTURE(item.key());
    REQUIRE(item.value().grad().defined());
    if (item.key().find(".experts.") == std::string::npos) continue;
    if (item.value().grad().count_nonzero().item<std::int64_t>() == 0) ++zero;
  }
  CHECK(zero == 2 * 15 * 3);
}

TEST_CASE("a step's statistics are of all of its batches, but for those that run again") {
  const auto model = mixtral({{"capacity_factor", 0.5}});
  CHECK(model->statistics() == std::vector<std::string>{"balance_loss", "busiest_share.0",
                                                        "busiest_share.1", "dropped_share.0",
                                                        "dropped_share.1"});
  const at::NoGradGuard no_grad;
  const double loss = flow_of(*model, tokens())[1].item<double>();
  const auto one = model->end_step({});
  CHECK(one[0].item<double>() == doctest::Approx(loss / 0.02));
  // Four experts with half of their share of 32 choices each: at most 4 rows, so at least half of
  // all is dropped; the busiest has a quarter or more.
  CHECK(one[1].item<double>() >= 0.25);
  CHECK(one[3].item<double>() >= 0.5);
  CHECK(one[3].item<double>() < 1);

  flow_of(*model, tokens());
  flow_of(*model, tokens());
  units::Context again;
  again.again = true;
  flow_of(*model, at::zeros({2, 8}, at::kLong), again);
  CHECK(at::allclose(model->end_step({}), one));
  model->eval();
  flow_of(*model, tokens());
  CHECK(at::equal(model->end_step({}), at::zeros({5}, at::kDouble)));  // nothing was counted
}

TEST_CASE("all tokens are counted by all ranks before the biases move, and only by training") {
  const auto model = mixtral({{"router_bias_rate", 0.1}});
  const at::NoGradGuard no_grad;
  flow_of(*model, tokens());
  at::Tensor counted;
  // The other rank's tokens have all chosen the first two experts, so many that ours do not matter.
  model->end_step([&](const at::Tensor& values) {
    counted = values.clone();
    values.narrow(1, 0, 2).add_(1000);
  });
  CHECK(counted.narrow(1, 0, 4).sum().item<double>() == 2 * 2 * 16);  // blocks, choices, tokens
  const at::Tensor bias = model->named_buffers()[kBias];
  CHECK(at::allclose(bias, at::tensor({-0.1, -0.1, 0.1, 0.1}, at::kFloat)));
  const at::Tensor before = bias.clone();
  model->eval();
  flow_of(*model, tokens());
  CHECK(at::equal(bias, before));
  // With this bias the other two are chosen.
  model->train();
  flow_of(*model, tokens());
  model->end_step([&](const at::Tensor& values) { counted = values.clone(); });
  CHECK(at::equal(counted[1].narrow(0, 0, 4), at::tensor({0, 0, 16, 16}, at::kDouble)));
}

// Gradients of the router of the first block, where the auxiliary loss alone is trained.
at::Tensor router_gradient(Model& model, const at::Tensor& input) {
  flow_of(model, input)[1].backward();
  return model.named_parameters()["model.layers.0.block_sparse_moe.gate.weight"].grad();
}

void for_each_mixture(Model& model, const std::function<void(ExpertLayer&)>& body) {
  for (const auto& module : model.modules()) {
    if (auto* const layer = dynamic_cast<ExpertLayer*>(module.get())) body(*layer);
  }
}

TEST_CASE("with tensor-parallel experts each rank has its part of the auxiliary loss's gradient") {
  const auto whole = mixtral(), part = mixtral();
  int sums = 0;
  for_each_mixture(*part, [&](ExpertLayer& layer) {
    layer.cut_experts(
        [&sums](const at::Tensor& answers) {
          ++sums;
          return answers;
        },
        4);
  });
  CHECK(at::allclose(router_gradient(*part, tokens()), router_gradient(*whole, tokens()) / 4));
  CHECK(sums == 2);  // one for each block
  CHECK(at::equal(flow_of(*part, tokens())[1], flow_of(*whole, tokens())[1]));
}

TEST_CASE("ranks that share sequences balance by the tokens of all of them") {
  const auto whole = mixtral(), half = mixtral();
  for_each_mixture(*half, [](ExpertLayer& layer) {
    layer.share_tokens([](const at::Tensor& own) { return own * 2; }, 2);  // the other has the same
  });
  const units::Flow flow = flow_of(*half, tokens()), expected = flow_of(*whole, tokens());
  CHECK(at::allclose(flow[0], expected[0]));
  CHECK(at::allclose(flow[1], expected[1]));
}

TEST_CASE("capacity drops in training alone, so that a text's length does not change its answer") {
  const auto model = mixtral({{"capacity_factor", 0.25}});
  const auto plain = mixtral();
  CHECK_FALSE(at::allclose(model->forward(tokens()), plain->forward(tokens())));
  model->eval();
  plain->eval();
  CHECK(at::equal(model->forward(tokens()), plain->forward(tokens())));
}

TEST_CASE("mixtral's tokens one at a time, with a cache, have the logits of the whole text") {
  const auto model = mixtral();
  model->eval();
  const at::NoGradGuard no_grad;
  const at::Tensor whole = model->forward(tokens());
  units::Cache cache(8);
  units::Context context;
  context.cache = &cache;
  for (std::int64_t i = 0; i < 8; ++i) {
    const at::Tensor logits = model->forward(tokens().narrow(1, i, 1), context);
    cache.advance(1);
    CHECK(at::allclose(logits, whole.narrow(1, i, 1), 1e-4, 1e-6));
  }
}

}  // namespace scaletrain::nn
