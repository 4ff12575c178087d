#include "lib/recipe/apart.h"

namespace scaletrain::recipe {

bool replicas_are_apart(const Recipe& recipe, int nodes) {
  if (recipe.sync.is_async()) return true;
  const Parallel& parallel = recipe.parallel;
  const bool is_one_rank =
      parallel.shard * parallel.expert * parallel.context * parallel.tensor * parallel.pipeline ==
      1;
  return recipe.sync.name == "diloco" && nodes == 1 && is_one_rank && !recipe.batch.ramp &&
         !recipe.schedule.plateau && !recipe.early_stopping && recipe.data.order != "streamed" &&
         recipe.precision.name != "fp64";
}

}  // namespace scaletrain::recipe
