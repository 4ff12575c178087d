// Runs steps of one rank of a simulated mesh: checks shapes and measures exposed communication.
#pragma once

#include <cstdint>
#include <span>

#include "lib/dist/fake/network.h"
#include "lib/nn/factory.h"
#include "lib/recipe/recipe.h"

namespace scaletrain::train {

// Times of one step, in seconds.
struct FakeStep {
  double seconds = 0;
  double exchange_s = 0;  // time of the step's collectives, one after the other
  double exposed_s = 0;   // exposed part, while the rank waits
  std::int64_t calls = 0, bytes = 0;
};

// Simulates `steps` steps after a first one and returns the step of median time. Weights and
// batches are blank. Throws core::RecipeError for a rank that is not the first of a pipeline, since
// only the previous rank knows the shapes that it sends, and the errors of the layout.
FakeStep measure_fake(recipe::Recipe recipe, const dist::FakeJob& job, std::int64_t steps,
                      const nn::Factories& models);

// Returns the exposed communication time of a step's calls, in seconds: as counted where this rank
// waited for a call; for a group that c10d's Reducer waits for, from the last bucket's start to its
// end.
double exposed_seconds(std::span<const dist::FakeCall> calls);

}  // namespace scaletrain::train
