// True if the replicas of a recipe's job are decoupled: after the start they share no collective,
// meet only at rank 0's hub (lib/dist/hub/hub.h), and one may be lost alone.
#pragma once

namespace scaletrain::recipe {

struct Recipe;

// async's always do. DiLoCo's do where nothing is decided or counted together between exchanges: no
// batch.ramp, schedule.plateau, early_stopping or streamed data.order; where weights are fp32, as
// the hub's are; and without sync.overlap, as replicas wait at the hub.
bool replicas_are_apart(const Recipe& recipe);

}  // namespace scaletrain::recipe
