#include "lib/recipe/tensor.h"

#include <doctest/doctest.h>

#include "lib/core/error.h"
#include "lib/recipe/catalog/catalog.h"
#include "lib/recipe/catalog/row_keys.h"
#include "lib/recipe/load.h"
#include "tests/recipe/recipe_support.h"

namespace scaletrain::recipe {
namespace {

// A small GPT-2, or what `model` is, with these changes more.
std::vector<std::string> text(const std::vector<std::string>& more, const std::string& model = "") {
  std::vector<std::string> changes{
      R"(data={"train": {"tokens": "a.bin"}, "context": 8})",
      model.empty() ? R"(model={"name": "gpt2", "vocab_size": 11, "positions": 8, "dim": 24,
                                "heads": 6})"
                    : model};
  changes.insert(changes.end(), more.begin(), more.end());
  return changes;
}

std::string vit(const std::string& more) {
  return R"(model={"name": "vit_tiny", "num_classes": 3, "patch_size": 8)" + more + "}";
}

std::string error_of(const std::vector<std::string>& changes) {
  return recipe::error_of(minimal_recipe(), changes);
}

TEST_CASE("ranks share layers, and the tokens between them where that is asked") {
  const Parallel plain = parse_recipe(minimal_recipe(), "r.json").parallel;
  CHECK(plain.tensor == 1);
  CHECK_FALSE(plain.sequence);
  const Recipe cut = parse_recipe(minimal_recipe(), "r.json",
                                  text({"parallel.tensor=2", "parallel.sequence=true"}));
  CHECK(cut.parallel.sequence);
  CHECK(cut.parallel.mesh().tensor == 2);
  CHECK(parse_recipe(to_json(cut), "r.json").parallel.sequence);
}

TEST_CASE("numbers that so many ranks cannot divide are reported with those that fit") {
  CHECK(error_of(text({"parallel.tensor=4"})) ==
        "--set parallel.tensor: 4 ranks cannot divide \"heads\" of the model, which is 6\n"
        "  use one of: 1, 2, 3, 6; or change the model");
  CHECK(error_of(text({"parallel.tensor=2"}, R"(model={"name": "gpt2", "vocab_size": 11,
            "positions": 8, "dim": 10, "heads": 2, "mlp_ratio": 0.5})")) ==
        "--set parallel.tensor: 2 ranks cannot divide \"dim\" times \"mlp_ratio\" of the model, "
        "which is 5\n"
        "  use one of: 1, 5; or change the model");
  CHECK(error_of(text({"parallel.tensor=4"}, R"(model={"name": "llama", "vocab_size": 11,
            "positions": 8, "dim": 32, "heads": 8, "kv_heads": 2})")) ==
        "--set parallel.tensor: 4 ranks cannot divide \"kv_heads\" of the model, which is 2\n"
        "  use one of: 1, 2; or change the model");
  // An automatic width of the MLP and a vocabulary of any size can be cut.
  CHECK(error_of(text({"parallel.tensor=2"}, R"(model={"name": "llama", "vocab_size": 11,
            "positions": 8, "dim": 32, "heads": 8, "kv_heads": 2})")) == "no error");
}

TEST_CASE("a model that does not say how its layers are shared is refused") {
  CHECK(
      error_of({"model.name=resnet18", "parallel.tensor=2"}) ==
      "--set parallel.tensor: resnet18 has no tensor-parallel plan\n"
      "  use 1, or one of: " +
          models_where([](const Row& row) { return row.has_rule(Rule::Kind::kTensorRanksShare); }));
}

TEST_CASE("what looks at whole tensors does not go with parts of them") {
  const auto error = [](const std::string& change) {
    return error_of(text({"parallel.tensor=2", change}));
  };
  CHECK(error(R"(optimizer={"name": "lamb", "lr": 0.1})") ==
        "--set optimizer: /optimizer/name: lamb needs full tensors, and each of \"tensor\": 2 "
        "ranks has slices\n"
        "  use \"tensor\": 1, or an element-wise alternative");
  CHECK(error("clip.adaptive=0.1").find("--set clip.adaptive: it needs full tensors") !=
        std::string::npos);
  CHECK(error("optimizer.centralize_gradients=true").find("centralize_gradients") !=
        std::string::npos);
  CHECK(error("clip.norm=1") == "no error");
}

TEST_CASE("what else divides a model goes with it, and other exchanges of replicas") {
  CHECK(error_of(text({"parallel.tensor=2", "parallel.shard=2", "parallel.pipeline=2",
                       "batch.accumulate=2"})) == "no error");
  CHECK(error_of(text({"parallel.tensor=2", "compress=bf16"})) == "no error");
  CHECK(error_of(text({"parallel.tensor=2", "sync=periodic"})) == "no error");
}

TEST_CASE("tokens are divided over several ranks, evenly") {
  CHECK(error_of(text({"parallel.sequence=true"})) ==
        "--set parallel.sequence: divides tokens over the ranks of \"tensor\", which is 1\n"
        "  set \"tensor\", or leave it out");
  CHECK(error_of(text({"parallel.tensor=3", "parallel.sequence=true"})) ==
        "--set parallel.sequence: 3 ranks cannot divide 8 tokens evenly\n"
        "  make /data/context a multiple of \"tensor\"");
  const std::vector<std::string> divided{"data.image_size=32", "parallel.tensor=2",
                                         "parallel.sequence=true"};
  const auto of_images = [&](const std::string& model) {
    std::vector<std::string> changes{model, "model.heads=4", "model.dim=16"};
    changes.insert(changes.end(), divided.begin(), divided.end());
    return error_of(changes);
  };
  CHECK(of_images(vit("")) ==
        "--set parallel.sequence: 2 ranks cannot divide 17 tokens evenly\n"
        "  leave it out, or let the head read the mean: \"pool\": \"avg\" has no class token");
  CHECK(of_images(vit(R"(, "pool": "avg")")) == "no error");
}

TEST_CASE("a tensor-parallel model without sequence parallelism is refused with sequence") {
  const Row mixer("mixer", "", {KEY_INT(dim, 16, from(8).to(64), ""), TENSOR_RANKS_SHARE(dim)});
  const auto error = [&](const std::string& sequence) -> std::string {
    try {
      parse_recipe(minimal_recipe(), "r.json",
                   {"model.name=mixer", "parallel.tensor=2", "parallel.sequence=" + sequence},
                   catalog_with({mixer}));
    } catch (const core::RecipeError& refused) {
      return refused.what();
    }
    return "no error";
  };
  CHECK(error("false") == "no error");
  CHECK(error("true") ==
        "--set parallel.sequence: mixer does not support sequence parallelism\n"
        "  leave it out, or use one of: " +
            models_where(
                [](const Row& row) { return row.has_rule(Rule::Kind::kSequenceRanksShare); }));
}

}  // namespace
}  // namespace scaletrain::recipe
