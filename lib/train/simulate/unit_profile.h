// What the units of a model cost a rank that has a part of them, found without the ranks beside it
// and without their size: of the units that are alike one is run, on a few tokens or samples, and
// what it keeps and exchanges grows with both in a way that two or three sizes determine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/dist/fake/network.h"
#include "lib/dist/mesh.h"
#include "lib/train/learner.h"

namespace scaletrain::train {

// Exchanges of one kind among ranks that share layers, or experts.
struct UnitExchange {
  dist::FakeKind kind = dist::FakeKind::kAllReduce;
  double calls = 0, bytes = 0;
};

// Of one micro-batch, forward and backward.
struct UnitProfile {
  std::string name;
  std::int64_t saved_bytes = 0;  // of its activations that backward needs
  std::int64_t input_bytes = 0;  // of what enters it: all that stays where it runs again
  std::int64_t inputs = 1;       // tensors that enter it
  bool runs_again = false;
  std::vector<UnitExchange> exchanges;  // with its tensor group, by kind
  std::vector<UnitExchange> tokens;     // with the ranks that have the other experts
  std::vector<UnitExchange> keys;       // that go to the next rank of its context group
  std::vector<UnitExchange> sums;       // of what experts of all tokens are chosen by, with that
};

// One for each unit of `learner`'s model, in their order; experts that ranks share are divided, and
// get as many tokens on each. `mesh` is one of `network`. `samples`: of
// a micro-batch. Throws core::RecipeError, and what running the model does.
std::vector<UnitProfile> profile_units(const recipe::Recipe& recipe, Learner& learner,
                                       dist::Mesh& mesh, dist::FakeNetwork& network,
                                       std::int64_t samples);

}  // namespace scaletrain::train
