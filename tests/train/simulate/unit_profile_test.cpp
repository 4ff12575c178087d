#include "lib/train/simulate/unit_profile.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include "lib/engine/engine.h"
#include "lib/parallel/data_parallel.h"
#include "lib/train/simulate/blank_batch.h"
#include "tests/engine/one_rank.h"

namespace scaletrain::train {
namespace {

using Options = std::map<std::string, recipe::Component::Value>;
using Integer = std::int64_t;

struct OnFakeMesh {
  OnFakeMesh(const recipe::Recipe& asked, int tensor)
      : recipe(asked),
        network(std::make_shared<dist::FakeNetwork>(dist::FakeJob{.rank = 0, .world_size = 4})),
        world(network, at::kCPU),
        mesh(world, core::MeshPlan(4, {.pipe = 1, .replica = {}, .shard = 1, .tensor = tensor})),
        learner(build_learner(recipe, at::kCPU, {.steps_per_epoch = 1, .total_steps = 1}, 1,
                              nn::built_in_factories(), &mesh)) {
    learner.model->train();
  }

  // What each unit keeps of a whole micro-batch.
  std::vector<std::int64_t> measured(std::int64_t samples) {
    const std::unique_ptr<task::Task> task = task::make_task(recipe, at::kCPU);
    parallel::DataParallel placement(learner.parameters(), mesh, {});
    engine::Engine engine(
        {.model = *learner.model,
         .task = *task,
         .precision = *learner.precision,
         .placement = placement,
         .mesh = mesh,
         .units = units_of_part(recipe, mesh, {learner.model, learner.parts}, *task)},
        1);
    std::vector<std::int64_t> bytes;
    for (const engine::UnitCost& cost :
         engine.measure_units(blank_batch(recipe, *task, samples, recipe.data.context))) {
      bytes.push_back(cost.saved_bytes);
    }
    return bytes;
  }

  std::vector<std::int64_t> profiled(std::int64_t samples) {
    std::vector<std::int64_t> bytes;
    for (const UnitProfile& one : profile_units(recipe, learner, mesh, *network, samples)) {
      bytes.push_back(one.saved_bytes);
    }
    return bytes;
  }

  recipe::Recipe recipe;
  std::shared_ptr<dist::FakeNetwork> network;
  dist::Group world;
  dist::Mesh mesh;
  Learner learner;
};

recipe::Recipe gpt2(std::int64_t context) {
  recipe::Recipe recipe = testing::recipe_of_model("gpt2", {{"vocab_size", Integer{40}},
                                                            {"positions", context},
                                                            {"dim", Integer{32}},
                                                            {"depth", Integer{6}},
                                                            {"heads", Integer{4}}});
  recipe.data.context = context;
  return recipe;
}

TEST_CASE("the FLOPs of units are those of their matrix products and of attention") {
  constexpr std::int64_t kTokens = 96, kSamples = 5, kDim = 32, kDepth = 6, kVocabulary = 40;
  OnFakeMesh language(gpt2(kTokens), 1);
  double forward = 0;
  for (const UnitProfile& one : profile_units(language.recipe, language.learner, language.mesh,
                                              *language.network, kSamples)) {
    forward += one.flops.forward();
  }
  // Keys, queries, values and output of attention, and two layers of four times the width.
  constexpr double kWeights = kDepth * 12.0 * kDim * kDim + kDim * kVocabulary;
  constexpr double kScores = 4.0 * kDepth * kTokens * kTokens * kDim;
  CHECK(forward == doctest::Approx(kSamples * (2 * kTokens * kWeights + kScores)).epsilon(1e-9));
}

TEST_CASE("what units keep of many tokens and samples is known from a few") {
  for (const int tensor : {1, 2}) {
    CAPTURE(tensor);
    OnFakeMesh language(gpt2(96), tensor);
    CHECK(language.profiled(5) == language.measured(5));
  }
  OnFakeMesh images(testing::recipe_of_model("resnet18"), 1);
  CHECK(images.profiled(6) == images.measured(6));
  recipe::Recipe bf16 = gpt2(64);
  bf16.precision.name = "bf16";
  OnFakeMesh halves(bf16, 1);
  CHECK(halves.profiled(3) == halves.measured(3));
}

TEST_CASE("units that share layers exchange activations in forward and in backward") {
  OnFakeMesh two(gpt2(96), 2);
  const std::vector<UnitProfile> profiles =
      profile_units(two.recipe, two.learner, two.mesh, *two.network, 5);
  REQUIRE(profiles.size() == 8);
  for (std::size_t block = 1; block < 7; ++block) {
    REQUIRE(profiles[block].exchanges.size() == 1);
    CHECK(profiles[block].exchanges[0].kind == dist::FakeKind::kAllReduce);
    CHECK(profiles[block].exchanges[0].calls == 4);  // behind attention and MLP, there and back
    CHECK(profiles[block].exchanges[0].bytes == 4 * 5 * 96 * 32 * 4);
  }
}

TEST_CASE("a unit that runs again exchanges what its forward does twice") {
  recipe::Recipe recipe = gpt2(96);
  recipe.recompute = recipe::Recompute{.units = {}, .every = 2, .match = {}};
  OnFakeMesh two(recipe, 2);
  const std::vector<UnitProfile> profiles =
      profile_units(two.recipe, two.learner, two.mesh, *two.network, 5);
  for (const UnitProfile& one : profiles) {
    if (one.name == "head" || one.name == "stem") continue;
    CHECK(one.exchanges[0].calls >= (one.runs_again ? 5 : 4));
  }
  CHECK(profiles[2].runs_again != profiles[3].runs_again);
}

}  // namespace
}  // namespace scaletrain::train
