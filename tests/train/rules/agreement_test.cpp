#include "lib/train/rules/agreement.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "lib/recipe/load.h"

namespace scaletrain::train {
namespace {

recipe::Recipe small_recipe(const std::vector<std::string>& overrides = {}) {
  return recipe::parse_recipe(R"({
    "name": "r", "model": {"name": "mlp", "num_classes": 3, "hidden": 8, "layers": 1},
    "data": {"train": {"shards": "a.tar"}, "image_size": 8},
    "optimizer": {"name": "sgd", "lr": 0.1}, "steps": 1})",
                              "r.json", overrides);
}

dist::Claim claim_of(const std::vector<dist::Claim>& claims, const std::string& field) {
  const auto found = std::find_if(claims.begin(), claims.end(),
                                  [&](const dist::Claim& claim) { return claim.field == field; });
  REQUIRE(found != claims.end());
  return *found;
}

// What a rank claims of the model of a recipe.
std::string model_claim(const std::vector<std::string>& overrides) {
  const recipe::Recipe recipe = small_recipe(overrides);
  std::vector<dist::Claim> claims;
  claim_model(claims, 7, *nn::make_model(recipe.model, recipe.data.image_size, recipe.seed));
  CHECK(claim_of(claims, "the number of steps").value == "7");
  CHECK(claim_of(claims, "the model").code == core::ExitCode::kUsage);
  return claim_of(claims, "the model").value;
}

TEST_CASE("on joining a rank claims each key of the recipe, LibTorch and the checkpoint") {
  const auto claims = claims_on_joining(small_recipe(), "/run/checkpoints/step-00000004");
  CHECK(claim_of(claims, "optimizer.lr of the recipe").value == "0.1");
  CHECK(claim_of(claims, "optimizer.lr of the recipe").code == core::ExitCode::kUsage);
  CHECK(!claim_of(claims, "LibTorch's version").value.empty());
  CHECK(claim_of(claims, "the checkpoint to resume from").value == "step-00000004");
  CHECK(claim_of(claims_on_joining(small_recipe(), std::nullopt), "the checkpoint to resume from")
            .value == "none");
}

TEST_CASE("sets are claimed by size and digests, and are data") {
  std::vector<dist::Claim> claims;
  claim_set(claims, "data.val", {.samples = 200, .digest = "00ff"});
  claim_samples(claims, "");
  claim_classes(claims, {"cat", "dog"});
  std::vector<dist::Claim> of_others;
  claim_classes(of_others, {"dog", "cat"});
  CHECK(claim_of(claims, "the number of samples of data.val").value == "200");
  CHECK(claim_of(claims, "the digest of data.val (names, labels and sizes)").value == "00ff");
  CHECK(claim_of(claims, "the digest of 16 samples of data.train").value.empty());
  const std::string names = claim_of(claims, "the class names of data.train").value;
  CHECK(names.starts_with(R"("cat", "dog" (digest )"));
  CHECK(names != claim_of(of_others, "the class names of data.train").value);
  for (const dist::Claim& claim : claims) CHECK(claim.code == core::ExitCode::kData);
}

TEST_CASE("a model is claimed by names, shapes and types, not by its values") {
  const std::string claim = model_claim({});
  // 8 x 8 x 3 inputs to 8, and 8 to 3, with biases: 192 * 8 + 8 + 8 * 3 + 3.
  CHECK(claim.starts_with("4 tensors of 1571 elements (digest "));
  CHECK(model_claim({"seed=5"}) == claim);
  CHECK(model_claim({"model.hidden=9"}) != claim);
}

}  // namespace
}  // namespace scaletrain::train
