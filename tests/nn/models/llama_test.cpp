#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "lib/core/error.h"
#include "lib/nn/model.h"
#include "tests/nn/recipes.h"

namespace scaletrain::nn {

TEST_CASE("llama has Hugging Face's tensors, fewer heads of keys and values, and no biases") {
  auto recipe = model_recipe("llama");
  const auto model = make_model(recipe, 0, 1);
  const auto parameters = model->named_parameters();
  CHECK(parameters.size() == 1 + 2 * 9 + 2);  // embedding, two blocks, the last norm and the head
  CHECK(parameters["model.embed_tokens.weight"].sizes() == at::IntArrayRef({10, 16}));
  CHECK(parameters["model.layers.1.self_attn.q_proj.weight"].sizes() == at::IntArrayRef({16, 16}));
  CHECK(parameters["model.layers.1.self_attn.k_proj.weight"].sizes() == at::IntArrayRef({8, 16}));
  CHECK(parameters["model.layers.1.mlp.gate_proj.weight"].sizes() == at::IntArrayRef({256, 16}));
  CHECK(parameters["lm_head.weight"].sizes() == at::IntArrayRef({10, 16}));
  CHECK(model->named_buffers().is_empty());

  recipe.options["tied"] = true;
  recipe.options["hidden"] = std::int64_t{40};
  const auto tied = make_model(recipe, 0, 1)->named_parameters();
  CHECK_FALSE(tied.contains("lm_head.weight"));
  CHECK(tied["model.layers.0.mlp.down_proj.weight"].sizes() == at::IntArrayRef({16, 40}));
}

TEST_CASE("a token's logits in llama depend on the tokens before it, not on those after it") {
  const auto model = make_model(model_recipe("llama"), 0, 1);
  const at::Tensor tokens = at::tensor({1, 2, 3, 4, 5}, at::kLong).view({1, 5});
  at::Tensor later = tokens.clone(), earlier = tokens.clone();
  later[0][3] = 9;
  earlier[0][1] = 9;
  const at::Tensor logits = model->forward(tokens);
  CHECK(at::allclose(model->forward(later).narrow(1, 0, 3), logits.narrow(1, 0, 3)));
  CHECK_FALSE(at::allclose(model->forward(later).narrow(1, 3, 2), logits.narrow(1, 3, 2)));
  CHECK_FALSE(at::allclose(model->forward(earlier).narrow(1, 3, 2), logits.narrow(1, 3, 2)));
}

TEST_CASE("heads of an odd width have no pairs to turn") {
  auto recipe = model_recipe("llama");
  recipe.options["dim"] = std::int64_t{12};
  CHECK_THROWS_WITH_AS(make_model(recipe, 0, 1),
                       "/model/heads: a head is 3 wide, and rotary positions need pairs\n"
                       "  use heads of an even width",
                       core::RecipeError);
}

TEST_CASE("llama starts with deviations of 0.02, and norms of 1") {
  auto recipe = model_recipe("llama");
  recipe.options["dim"] = std::int64_t{64};
  const auto parameters = make_model(recipe, 0, 1)->named_parameters();
  const at::Tensor gate = parameters["model.layers.0.mlp.gate_proj.weight"];
  CHECK(gate.std().item<double>() == doctest::Approx(0.02).scale(0).epsilon(0.03));
  CHECK(at::equal(parameters["model.norm.weight"], at::ones({64})));
}

TEST_CASE("llama's head takes tokens one by one, and a tied one has the embedding's other name") {
  auto recipe = model_recipe("llama");
  const auto model = make_model(recipe, 0, 1);
  CHECK(model->units().back().takes_tokens_alone);
  CHECK(model->weight_rules().heads == 4);
  CHECK(model->weight_rules().heads_name == "num_attention_heads");
  CHECK(model->weight_rules().also_called.empty());
  recipe.options["tied"] = true;
  CHECK(make_model(recipe, 0, 1)->weight_rules().also_called.at("lm_head.weight") ==
        "model.embed_tokens.weight");
}

TEST_CASE("a scaling of the positions changes what llama computes, each its own way") {
  const at::Tensor tokens = at::arange(8).view({1, 8});
  const auto logits_with = [&](const char* scaling, double factor) {
    auto recipe = model_recipe("llama");
    recipe.options["rope_scaling"] = std::string(scaling);
    recipe.options["rope_factor"] = factor;
    recipe.options["rope_original_positions"] = std::int64_t{8};
    return make_model(recipe, 0, 1)->forward(tokens);
  };
  std::vector<at::Tensor> logits;
  for (const char* const scaling : {"none", "linear", "llama3"}) {
    logits.push_back(logits_with(scaling, 4));
  }
  CHECK(at::equal(logits_with("none", 8), logits[0]));
  CHECK_FALSE(at::allclose(logits[0], logits[1]));
  CHECK_FALSE(at::allclose(logits[0], logits[2]));
  CHECK_FALSE(at::allclose(logits[1], logits[2]));
}

TEST_CASE("llama's hidden layers are 8/3 of its width, in whole multiples of 256") {
  for (const auto& [dim, hidden] : {std::pair{96, 256}, std::pair{100, 512}, std::pair{288, 768}}) {
    auto recipe = model_recipe("llama");
    recipe.options["dim"] = std::int64_t{dim};
    recipe.options["heads"] = std::int64_t{2};
    const auto parameters = make_blank_model(recipe, 0)->named_parameters();
    CHECK(parameters["model.layers.0.mlp.up_proj.weight"].size(0) == hidden);
  }
}

}  // namespace scaletrain::nn
