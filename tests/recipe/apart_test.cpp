#include "lib/recipe/apart.h"

#include <doctest/doctest.h>

#include <functional>
#include <string>

#include "lib/recipe/recipe.h"

namespace {

using namespace scaletrain::recipe;

TEST_CASE("replicas are decoupled if no recipe section needs them together") {
  struct ApartCase {
    std::string what;
    std::function<void(Recipe&)> change;
    bool apart;
  };
  const std::vector<ApartCase> cases{
      {"every step", [](Recipe& one) { one.sync.name = "every_step"; }, false},
      {"periodic", [](Recipe& one) { one.sync.name = "periodic"; }, false},
      {"async", [](Recipe& one) { one.sync.name = "async"; }, true},
      {"diloco", [](Recipe&) {}, true},
      {"fragments", [](Recipe& one) { one.sync.fragments = 4; }, true},
      {"overlap", [](Recipe& one) { one.sync.overlap = 1; }, false},
      {"tensor", [](Recipe& one) { one.parallel.tensor = 2; }, true},
      {"context", [](Recipe& one) { one.parallel.context = 2; }, true},
      {"shard", [](Recipe& one) { one.parallel.shard = 2; }, true},
      {"expert", [](Recipe& one) { one.parallel.expert = 2; }, true},
      {"pipeline", [](Recipe& one) { one.parallel.pipeline = 2; }, true},
      {"ramp", [](Recipe& one) { one.batch.ramp.emplace(); }, false},
      {"plateau", [](Recipe& one) { one.schedule.plateau.emplace(); }, false},
      {"early stopping", [](Recipe& one) { one.early_stopping.emplace(); }, false},
      {"fp64", [](Recipe& one) { one.precision.name = "fp64"; }, false},
      {"streamed", [](Recipe& one) { one.data.order = "streamed"; }, false},
  };
  for (const ApartCase& one : cases) {
    CAPTURE(one.what);
    Recipe recipe;
    recipe.sync.name = "diloco";
    one.change(recipe);
    CHECK(replicas_are_apart(recipe) == one.apart);
  }
}

}  // namespace
