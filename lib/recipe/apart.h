// True if the replicas of a recipe's job are decoupled: after the start they share no collective,
// communicate only through rank 0's hub (lib/dist/hub/hub.h), and the job survives the loss of a
// replica.
#pragma once

namespace scaletrain::recipe {

struct Recipe;

// Replicas of async are always decoupled. Replicas of DiLoCo are decoupled under three conditions:
// no recipe section needs a common decision or count between synchronizations (batch.ramp,
// schedule.plateau, early_stopping, anomaly, streamed data.order); the weights are fp32, as in the
// hub; and sync.overlap is not set, since replicas wait at the hub.
bool replicas_are_apart(const Recipe& recipe);

}  // namespace scaletrain::recipe
