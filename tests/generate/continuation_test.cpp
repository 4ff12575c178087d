#include "lib/generate/continuation.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "lib/nn/model.h"
#include "tests/nn/recipes.h"

namespace scaletrain::generate {
namespace {

using Tokens = std::vector<std::int64_t>;

const std::vector<std::string> kFamilies{"gpt2", "llama", "mixtral"};
constexpr Limits kLimits{.tokens = 20, .positions = 8, .vocabulary = 10, .end_of_text = -1};

// With larger weights than at the start, so that the best token is far ahead.
std::shared_ptr<nn::Model> model_of(const std::string& name) {
  auto model = nn::make_model(nn::model_recipe(name), 0, 1);
  const at::NoGradGuard no_grad;
  for (at::Tensor& parameter : model->parameters()) {
    if (parameter.dim() == 2) parameter.mul_(10);
  }
  return model;
}

struct Continued {
  Tokens tokens;
  End end = End::kTokens;
};

Continued continued(nn::Model& model, const Tokens& prompt, const Limits& limits = kLimits,
                    const Sampling& sampling = {.temperature = 0}) {
  Continued result;
  model.eval();
  const Scores scores = [&](const at::Tensor& input, const units::Context& context) {
    return model.forward(input, context);
  };
  result.end = continue_text(scores, at::kCPU, prompt, limits, Sampler(sampling),
                             [&](std::int64_t token) { result.tokens.push_back(token); });
  return result;
}

// Run on the whole text for each token.
std::int64_t best_after(nn::Model& model, const Tokens& text) {
  const at::NoGradGuard no_grad;
  const at::Tensor input = at::tensor(text, at::kLong).unsqueeze(0);
  return model.forward(input)[0][-1].argmax().item<std::int64_t>();
}

}  // namespace

TEST_CASE("with the cache a text goes on as without, to the end of the positions") {
  for (const std::string& name : kFamilies) {
    for (const Tokens& prompt : {Tokens{3}, Tokens{1, 2, 3, 4}, Tokens{1, 2, 3, 4, 5, 6, 7, 8}}) {
      CAPTURE(name);
      CAPTURE(prompt.size());
      const auto model = model_of(name);
      const Continued found = continued(*model, prompt);
      CHECK(found.end == End::kPositions);
      REQUIRE(found.tokens.size() == 8 - prompt.size() + 1);
      Tokens text = prompt;
      for (const std::int64_t token : found.tokens) {
        CHECK(token == best_after(*model, text));
        text.push_back(token);
      }
    }
  }
}

TEST_CASE("a text ends at the end of text, at the most tokens, and within the vocabulary") {
  const auto model = model_of("gpt2");
  const Tokens free = continued(*model, {1, 2}).tokens;
  Limits limits = kLimits;
  limits.tokens = 3;
  const Continued three = continued(*model, {1, 2}, limits);
  CHECK(three.end == End::kTokens);
  CHECK((three.tokens == Tokens(free.begin(), free.begin() + 3)));

  limits = kLimits;
  limits.end_of_text = free.front();
  const Continued none = continued(*model, {1, 2}, limits);
  CHECK(none.end == End::kEndOfText);
  CHECK(none.tokens.empty());

  limits = kLimits;
  limits.vocabulary = free.front();  // what was best is not among them
  for (const std::int64_t token : continued(*model, {1, 2}, limits).tokens) {
    CHECK(token < free.front());
  }
}

TEST_CASE("the same seed draws the same text, another one another") {
  const auto model = nn::make_model(nn::model_recipe("llama"), 0, 1);
  const auto text = [&](std::uint64_t seed) {
    return continued(*model, {1}, kLimits, {.seed = seed}).tokens;
  };
  CHECK((text(1) == text(1)));
  CHECK((text(1) != text(2)));
}

TEST_CASE("with document attention generation ignores the end-of-text token before the prompt") {
  const auto model = model_of("gpt2");
  Limits limits = kLimits;
  limits.end_of_text = 9;
  limits.documents_apart = true;
  const Tokens text = continued(*model, {9}, limits).tokens;
  REQUIRE(text.size() > 1);
  CHECK(text[0] == best_after(*model, {9}));
  CHECK(text[1] == best_after(*model, {text[0]}));
}

}  // namespace scaletrain::generate
