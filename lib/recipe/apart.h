// Whether the replicas of a recipe's job wait for no collective of each other once they train: jobs
// of their own, that meet at rank 0's hub (lib/dist/hub/hub.h).
#pragma once

#include "lib/recipe/recipe.h"

namespace scaletrain::recipe {

// async's always do. DiLoCo's do on one node where nothing is decided or counted together between
// exchanges: no batch.ramp, schedule.plateau, early_stopping or streamed data.order; and where
// weights are fp32, as the hub's are.
bool replicas_are_apart(const Recipe& recipe, int nodes);

// Whether the others go on without a replica that is lost, too: apart on one node, whose launcher
// hears of it.
inline bool outlives_replicas(const Recipe& recipe, int nodes) {
  return nodes == 1 && replicas_are_apart(recipe, nodes);
}

}  // namespace scaletrain::recipe
