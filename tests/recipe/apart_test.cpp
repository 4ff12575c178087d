#include "lib/recipe/apart.h"

#include <doctest/doctest.h>

#include <functional>
#include <string>

namespace {

using namespace scaletrain::recipe;

TEST_CASE("replicas are apart, and outlive each other, where nothing needs them together") {
  struct ApartCase {
    std::string what;
    std::function<void(Recipe&)> change;
    bool apart, apart_on_two_nodes;
  };
  const std::vector<ApartCase> cases{
      {"every step", [](Recipe& one) { one.sync.name = "every_step"; }, false, false},
      {"periodic", [](Recipe& one) { one.sync.name = "periodic"; }, false, false},
      {"async", [](Recipe& one) { one.sync.name = "async"; }, true, true},
      {"diloco", [](Recipe&) {}, true, false},
      {"fragments", [](Recipe& one) { one.sync.fragments = 4; }, true, false},
      {"tensor", [](Recipe& one) { one.parallel.tensor = 2; }, true, false},
      {"context", [](Recipe& one) { one.parallel.context = 2; }, true, false},
      {"shard", [](Recipe& one) { one.parallel.shard = 2; }, true, false},
      {"expert", [](Recipe& one) { one.parallel.expert = 2; }, false, false},
      {"pipeline", [](Recipe& one) { one.parallel.pipeline = 2; }, true, false},
      {"ramp", [](Recipe& one) { one.batch.ramp.emplace(); }, false, false},
      {"plateau", [](Recipe& one) { one.schedule.plateau.emplace(); }, false, false},
      {"early stopping", [](Recipe& one) { one.early_stopping.emplace(); }, false, false},
      {"fp64", [](Recipe& one) { one.precision.name = "fp64"; }, false, false},
      {"streamed", [](Recipe& one) { one.data.order = "streamed"; }, false, false},
  };
  for (const ApartCase& one : cases) {
    CAPTURE(one.what);
    Recipe recipe;
    recipe.sync.name = "diloco";
    one.change(recipe);
    CHECK(replicas_are_apart(recipe, 1) == one.apart);
    CHECK(replicas_are_apart(recipe, 2) == one.apart_on_two_nodes);
    CHECK(outlives_replicas(recipe, 1) == one.apart);
    CHECK_FALSE(outlives_replicas(recipe, 2));
  }
}

}  // namespace
