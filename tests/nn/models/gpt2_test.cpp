#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <string>

#include "lib/nn/model.h"
#include "tests/nn/recipes.h"

namespace scaletrain::nn {

TEST_CASE("gpt2 has Hugging Face's tensors, the products stored [in, out]") {
  auto recipe = model_recipe("gpt2");
  recipe.options["mlp_ratio"] = 2.5;
  const auto model = make_model(recipe, 0, 1);
  const auto parameters = model->named_parameters();
  CHECK(parameters.size() == 2 + 2 * 12 + 2);  // embeddings, two blocks, the last norm
  CHECK(parameters["wte.weight"].sizes() == at::IntArrayRef({10, 16}));
  CHECK(parameters["wpe.weight"].sizes() == at::IntArrayRef({8, 16}));
  CHECK(parameters["h.1.attn.c_attn.weight"].sizes() == at::IntArrayRef({16, 48}));
  CHECK(parameters["h.1.attn.c_proj.weight"].sizes() == at::IntArrayRef({16, 16}));
  CHECK(parameters["h.1.mlp.c_fc.weight"].sizes() == at::IntArrayRef({16, 40}));  // 2.5 * 16
  CHECK(parameters["h.1.mlp.c_proj.bias"].sizes() == at::IntArrayRef({16}));
  CHECK(parameters.contains("h.0.ln_2.bias"));
  CHECK(parameters.contains("ln_f.weight"));
}

TEST_CASE("GPT-2 small has 124,439,808 parameters") {
  auto recipe = model_recipe("gpt2");
  recipe.options.insert_or_assign("vocab_size", std::int64_t{50257});
  recipe.options.insert_or_assign("positions", std::int64_t{1024});
  recipe.options.insert_or_assign("dim", std::int64_t{768});
  recipe.options.insert_or_assign("depth", std::int64_t{12});
  recipe.options.insert_or_assign("heads", std::int64_t{12});
  std::int64_t count = 0;
  for (const at::Tensor& parameter : make_model(recipe, 0, 1)->parameters()) {
    count += parameter.numel();
  }
  CHECK(count == 124'439'808);
}

TEST_CASE("a token's logits depend on the tokens before it, not on those after it") {
  const auto model = make_model(model_recipe("gpt2"), 0, 1);
  model->eval();
  const at::Tensor tokens = at::tensor({1, 2, 3, 4, 5}, at::kLong).view({1, 5});
  at::Tensor later = tokens.clone(), earlier = tokens.clone();
  later[0][3] = 9;
  earlier[0][1] = 9;
  const at::Tensor logits = model->forward(tokens);
  CHECK(logits.sizes() == at::IntArrayRef({1, 5, 10}));
  CHECK(at::allclose(model->forward(later).narrow(1, 0, 3), logits.narrow(1, 0, 3)));
  CHECK_FALSE(at::allclose(model->forward(later).narrow(1, 3, 2), logits.narrow(1, 3, 2)));
  CHECK_FALSE(at::allclose(model->forward(earlier).narrow(1, 3, 2), logits.narrow(1, 3, 2)));
}

TEST_CASE("the order of tokens matters to gpt2, by the position embedding") {
  const auto model = make_model(model_recipe("gpt2"), 0, 1);
  model->eval();
  const at::Tensor same = at::full({1, 4}, 3, at::kLong);
  const at::Tensor logits = model->forward(same);
  CHECK_FALSE(at::allclose(logits.select(1, 0), logits.select(1, 1)));
}

TEST_CASE("gpt2 drops activations in training only") {
  auto recipe = model_recipe("gpt2");
  recipe.options["dropout"] = 0.5;
  const auto model = make_model(recipe, 0, 1);
  const at::Tensor tokens = at::arange(8).view({1, 8});
  CHECK_FALSE(at::equal(model->forward(tokens), model->forward(tokens)));
  model->eval();
  CHECK(at::equal(model->forward(tokens), model->forward(tokens)));
}

TEST_CASE("gpt2 starts with deviations of 0.02, less where a block adds to the residual stream") {
  auto recipe = model_recipe("gpt2");
  recipe.options["dim"] = std::int64_t{64};
  const auto parameters = make_model(recipe, 0, 1)->named_parameters();
  const auto deviation = [&](const char* name) { return parameters[name].std().item<double>(); };
  CHECK(deviation("h.0.attn.c_attn.weight") == doctest::Approx(0.02).scale(0).epsilon(0.03));
  CHECK(deviation("h.1.mlp.c_proj.weight") ==
        doctest::Approx(0.01).scale(0).epsilon(0.03));  // / sqrt(2 * 2)
  CHECK(deviation("h.1.attn.c_proj.weight") == doctest::Approx(0.01).scale(0).epsilon(0.05));
  CHECK(parameters["h.1.mlp.c_fc.bias"].abs().max().item<double>() == 0);
  CHECK(at::equal(parameters["ln_f.weight"], at::ones({64})));
}

TEST_CASE("gpt2 adds the positions that the context says, else those from the first on") {
  const auto model = make_model(model_recipe("gpt2"), 0, 1);
  model->eval();
  const auto first = model->units().front();
  const at::Tensor tokens = at::tensor({1, 2, 1, 2}, at::kLong).view({1, 4});
  const at::Tensor plain = first.run({tokens}, {})[0];
  units::Context twice;
  twice.positions = at::tensor({0, 1, 0, 1}, at::kLong).view({1, 4});
  const at::Tensor again = first.run({tokens}, twice)[0];
  CHECK(at::equal(again.narrow(1, 0, 2), plain.narrow(1, 0, 2)));
  CHECK(at::equal(again.narrow(1, 2, 2), plain.narrow(1, 0, 2)));
}

TEST_CASE("gpt2's head takes tokens one by one, and its weights have Hugging Face's names") {
  const auto model = make_model(model_recipe("gpt2"), 0, 1);
  const auto units = model->units();
  CHECK(units.back().takes_tokens_alone);
  CHECK_FALSE(units.front().takes_tokens_alone);
  const units::WeightRules rules = model->weight_rules();
  CHECK(rules.positions == "wpe.weight");
  CHECK(rules.heads == 4);
  CHECK(rules.heads_name == "n_head");
  CHECK(rules.also_called.at("lm_head.weight") == "wte.weight");
}

}  // namespace scaletrain::nn
