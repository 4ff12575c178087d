#include "lib/engine/chunked_loss.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "lib/core/error.h"
#include "lib/units/memory_meter.h"
#include "tests/engine/one_rank.h"

namespace scaletrain::engine {
namespace {

constexpr std::int64_t kTokens = 3 * 16;  // of a batch

recipe::Recipe text_model(const std::string& name, std::int64_t vocabulary = 53) {
  recipe::Recipe recipe = testing::recipe_of_model(name, {{"vocab_size", vocabulary},
                                                          {"positions", std::int64_t{16}},
                                                          {"dim", std::int64_t{16}},
                                                          {"depth", std::int64_t{2}},
                                                          {"heads", std::int64_t{2}}});
  if (name != "gpt2") recipe.model.options.at("kv_heads") = std::int64_t{2};
  return recipe;
}

double largest_difference_of(const std::vector<at::Tensor>& ours,
                             const std::vector<at::Tensor>& theirs) {
  REQUIRE(ours.size() == theirs.size());
  double worst = 0;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    const double far = (ours[i] - theirs[i]).abs().max().item<double>();
    worst = std::max(worst, far / std::max(1e-6, theirs[i].abs().max().item<double>()));
  }
  return worst;
}

// Two micro-batches, some of whose targets count for nothing.
std::vector<task::Example> batches_of(const recipe::Recipe& recipe) {
  std::vector<task::Example> result{testing::example_of(recipe, 3, 1),
                                    testing::example_of(recipe, 3, 2)};
  result[0].target.narrow(1, 4, 3).fill_(-100);
  return result;
}

// The highest use of all kinds in a step, without what was there before it.
double peak_bytes(const recipe::Recipe& recipe, std::int64_t samples) {
  testing::OneRank rank(recipe);
  const std::vector<task::Example> examples{testing::example_of(recipe, samples, 1)};
  const auto meter = std::make_shared<units::MemoryMeter>(at::kCPU);
  const units::MemoryWatch watch(meter);
  rank.step(0, examples);
  return static_cast<double>(meter->peak().total());
}

}  // namespace

TEST_CASE(
    "losses and gradients of chunks are those of the whole, tied heads and dropout included") {
  for (const char* name : {"gpt2", "llama", "mixtral"}) {
    for (const double smoothing : {0.0, 0.1}) {
      recipe::Recipe recipe = text_model(name);
      recipe.loss.label_smoothing = smoothing;
      const std::vector<task::Example> examples = batches_of(recipe);
      testing::OneRank whole(recipe);
      const std::vector<at::Tensor> expected = whole.step(0, examples);
      for (const std::int64_t chunk : {std::int64_t{1}, std::int64_t{7}, kTokens, 2 * kTokens}) {
        CAPTURE(name);
        CAPTURE(chunk);
        recipe.loss.chunk = chunk;
        testing::OneRank parts(recipe);
        CHECK(largest_difference_of(parts.step(0, examples), expected) < 1e-5);
        CHECK(parts.loss == doctest::Approx(whole.loss).epsilon(1e-6));
      }
    }
  }
}

// 3 tokens in chunks of 2: the loss of the first chunk has `one` in it, that of the second `other`.
TEST_CASE("a parameter that some chunks do not use has the gradient of the others") {
  const at::Tensor hidden = at::tensor({1.0, 2.0, 4.0}).view({1, 3}).requires_grad_();
  const std::vector<at::Tensor> parameters{
      at::ones({}).requires_grad_(), at::ones({}).requires_grad_(), at::ones({}).requires_grad_()};
  const at::Tensor loss =
      chunked_loss(hidden, parameters, 2, [&](const at::Tensor& part, std::int64_t first) {
        return (part * parameters[first == 0 ? 0 : 1]).sum();
      });
  CHECK(loss.item<double>() == 7);
  (3 * loss).backward();
  CHECK(parameters[0].grad().item<double>() == 3 * (1 + 2));
  CHECK(parameters[1].grad().item<double>() == 3 * 4);
  CHECK_FALSE(parameters[2].grad().defined());
  CHECK(at::equal(hidden.grad(), at::full({1, 3}, 3.0)));
}

TEST_CASE("the loss of what is not trained is the sum of the chunks, and has no gradient") {
  const at::Tensor hidden = at::tensor({1.0, 2.0, 4.0}).view({1, 3});
  const at::Tensor loss =
      chunked_loss(hidden, {at::ones({})}, 2,
                   [](const at::Tensor& part, std::int64_t first) { return part.sum() + first; });
  CHECK(loss.item<double>() == 1 + 2 + 4 + 2);
  CHECK_FALSE(loss.requires_grad());
}

TEST_CASE("chunks go with units that run again, and with what is not trained") {
  recipe::Recipe recipe = text_model("llama");
  const std::vector<task::Example> examples = batches_of(recipe);
  const auto gradients = [&](bool trunk, bool head) {
    const auto model = nn::make_model(recipe.model, 32, 1);
    const auto all = model->units();
    auto named = model->named_parameters();
    for (std::size_t i = 0; i < all.size(); ++i) {
      for (const std::string& tensor : all[i].tensors) {
        named.find(tensor)->set_requires_grad(i + 1 == all.size() ? head : trunk);
      }
    }
    testing::OneRank rank(recipe, model);
    return rank.step(0, examples);
  };
  for (const auto& [trunk, head] : {std::pair{true, true}, {true, false}, {false, true}}) {
    recipe.loss.chunk = 0;
    recipe.recompute.reset();
    const std::vector<at::Tensor> expected = gradients(trunk, head);
    recipe.loss.chunk = 10;
    recipe.recompute = recipe::Recompute{.units = "all", .every = {}, .match = {}};
    CHECK(largest_difference_of(gradients(trunk, head), expected) < 1e-5);
  }
}

TEST_CASE("an evaluation's sums of chunks are those of the whole") {
  recipe::Recipe recipe = text_model("gpt2");
  const task::Example example = batches_of(recipe).front();
  const auto sums = [&](std::int64_t chunk) {
    recipe.loss.chunk = chunk;
    testing::OneRank rank(recipe);
    rank.model->eval();
    const at::NoGradGuard no_grad;
    return rank.engine.evaluate(example).sums;
  };
  const at::Tensor whole = sums(0);
  for (const std::int64_t chunk : {1, 10, 100}) {
    CHECK(at::allclose(sums(chunk), whole, 1e-6));
    CHECK(sums(chunk)[1].item<double>() == kTokens - 9);  // three of 16 in each text are left out
  }
}

TEST_CASE("with GPT-2's vocabulary a chunk needs a tenth of the whole's memory") {
  recipe::Recipe recipe = text_model("gpt2", 50257);
  const double whole = peak_bytes(recipe, 32);  // 512 tokens
  recipe.loss.chunk = 16;
  CHECK(peak_bytes(recipe, 32) <= 0.1 * whole);
}

TEST_CASE("a model whose last unit needs all tokens has no chunks") {
  recipe::Recipe recipe = testing::recipe_of_model("mlp");
  recipe.loss.chunk = 2;
  CHECK_THROWS_WITH(
      testing::OneRank{recipe},
      "/loss/chunk: the last unit of the model does not process each token by itself\n"
      "  leave it out; a model whose last unit does so sets takes_tokens_alone");
}

}  // namespace scaletrain::engine
