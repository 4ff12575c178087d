#include "lib/recipe/apart.h"

#include "lib/recipe/recipe.h"

namespace scaletrain::recipe {

bool replicas_are_apart(const Recipe& recipe) {
  if (recipe.sync.is_async()) return true;
  return recipe.sync.name == "diloco" && recipe.sync.overlap == 0 && !recipe.batch.ramp &&
         !recipe.schedule.plateau && !recipe.early_stopping && !recipe.anomaly &&
         recipe.data.order != "streamed" && recipe.precision.name != "fp64";
}

}  // namespace scaletrain::recipe
