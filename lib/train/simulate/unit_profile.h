// Profiles the memory and communication of a model's units on one rank of a sharded model, without
// the other ranks and at a small size. It runs one of each kind of equal units on a few tokens or
// samples; two or three sizes determine how saved and communicated bytes grow.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/dist/fake/network.h"
#include "lib/dist/mesh.h"
#include "lib/train/model/learner.h"
#include "lib/units/flop_counter.h"

namespace scaletrain::train {

// Exchanges of one kind among ranks that share layers, or experts.
struct UnitExchange {
  dist::FakeKind kind = dist::FakeKind::kAllReduce;
  double calls = 0, bytes = 0;
};

// Costs of a unit for one micro-batch, forward and backward.
struct UnitProfile {
  std::string name;
  std::int64_t saved_bytes = 0;  // activations that backward needs
  std::int64_t input_bytes = 0;  // inputs: all that activation checkpointing keeps
  std::int64_t inputs = 1;       // tensors that enter it
  units::Flops flops;            // FLOPs of the unit's forward
  bool runs_again = false;
  std::vector<UnitExchange> exchanges;  // collectives with the tensor group, by kind
  std::vector<UnitExchange> tokens;     // all-to-alls with the other expert-parallel ranks
  std::vector<UnitExchange> keys;       // sent to the next rank of its context group
  std::vector<UnitExchange> sums;       // context group: sums that route tokens to experts
};

// Floating-point operations of a rank in a step (lib/units/flop_counter.h).
struct StepFlops {
  double forward = 0, backward = 0;
  double recomputed = 0;  // forward again, in backward

  // Adds `micros` micro-batches of `unit`.
  void add(const UnitProfile& unit, double micros) {
    forward += micros * unit.flops.forward();
    backward += micros * unit.flops.backward();
    if (unit.runs_again) recomputed += micros * unit.flops.forward();
  }
};

// Returns a profile of each unit of `learner`'s model, in order. Experts that ranks share are
// divided, with equally many tokens each. `mesh` belongs to `network`. `samples`: samples of a
// micro-batch. Throws core::RecipeError and the errors of the model.
std::vector<UnitProfile> profile_units(const recipe::Recipe& recipe, Learner& learner,
                                       dist::Mesh& mesh, dist::FakeNetwork& network,
                                       std::int64_t samples);

}  // namespace scaletrain::train
