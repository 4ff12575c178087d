// True if the replicas of a recipe's job are decoupled: after the start they share no collective,
// communicate only through rank 0's hub (lib/dist/hub/hub.h), and the job survives the loss of a
// replica.
#pragma once

namespace scaletrain::recipe {

struct Recipe;

// Replicas of async are always decoupled. Those of DiLoCo are if nothing is decided or counted
// together between synchronizations (no batch.ramp, schedule.plateau, early_stopping, anomaly or
// streamed data.order), if weights are fp32, as in the hub, and without sync.overlap, since
// replicas wait at the hub.
bool replicas_are_apart(const Recipe& recipe);

}  // namespace scaletrain::recipe
