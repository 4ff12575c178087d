// Peak tensor memory of a rank's step, from the allocations of small steps on this machine
// (lib/core/plan/allocation_replay.h). The other ranks of its mesh are simulated.
#pragma once

#include "lib/dist/fake/network.h"
#include "lib/nn/factory.h"
#include "lib/recipe/recipe.h"
#include "lib/units/memory_meter.h"

namespace scaletrain::train {

struct StepMemoryUse {
  units::MemoryUse peak;      // in a step that follows another one
  bool was_replayed = false;  // false: measured in a step of the recipe's own micro-batch
};

// Runs a few steps with an eighth and a quarter of the micro-batch, at least 4 samples. If their
// allocations do not predict the recipe's micro-batch, it runs steps of that size. Needs the memory
// of the rank's state. Throws the errors of FakeRank.
StepMemoryUse predict_step_memory(const recipe::Recipe& recipe, const dist::FakeJob& job,
                                  const nn::Factories& models);

// Measures in steps of the recipe's own micro-batch. Throws likewise.
StepMemoryUse measure_step_memory(const recipe::Recipe& recipe, const dist::FakeJob& job,
                                  const nn::Factories& models);

}  // namespace scaletrain::train
