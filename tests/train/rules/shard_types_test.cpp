#include "lib/train/rules/shard_types.h"

#include <doctest/doctest.h>

#include "lib/nn/factory.h"
#include "tests/engine/one_rank.h"

namespace scaletrain::train {
namespace {

TEST_CASE("what autocast copies is gathered as bf16, but for what a loss in chunks adds up") {
  recipe::Recipe recipe = testing::recipe_of_model("llama", {{"vocab_size", std::int64_t{11}},
                                                             {"positions", std::int64_t{8}},
                                                             {"dim", std::int64_t{32}},
                                                             {"depth", std::int64_t{2}},
                                                             {"heads", std::int64_t{4}},
                                                             {"kv_heads", std::int64_t{2}},
                                                             {"hidden", std::int64_t{24}},
                                                             {"tied", false}});
  const auto model = nn::make_model(recipe.model, recipe.data.image_size, 1);
  const auto types_of = [&] {
    parallel::ShardingOptions sharding;
    for (const units::Unit& unit : model->units()) sharding.units.push_back(unit.tensors);
    take_types(recipe, *model, sharding);
    return sharding;
  };
  CHECK(types_of().gathered_as_bf16.empty());
  recipe.parallel.types = recipe::ShardTypes{.reduce = "bf16"};
  CHECK(types_of().reduces_as_bf16);
  CHECK(types_of().gathered_as_bf16.empty());

  recipe.parallel.types = recipe::ShardTypes{.parameters = "bf16"};
  const parallel::ShardingOptions narrow = types_of();
  CHECK_FALSE(narrow.reduces_as_bf16);
  // Four of attention and three of the MLP in each of two blocks, and the head; no norm, no
  // embedding.
  CHECK(narrow.gathered_as_bf16.size() == 2 * 7 + 1);
  for (const std::string& name : narrow.gathered_as_bf16) {
    CAPTURE(name);
    CHECK(name.find("norm") == std::string::npos);
    CHECK(name.find("embed") == std::string::npos);
    CHECK(model->named_parameters().contains(name));
  }
  recipe.loss.chunk = 3;
  CHECK(types_of().gathered_as_bf16.size() == 2 * 7);
}

}  // namespace
}  // namespace scaletrain::train
