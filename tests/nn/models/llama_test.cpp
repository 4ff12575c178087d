#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <string>

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

}  // namespace scaletrain::nn
