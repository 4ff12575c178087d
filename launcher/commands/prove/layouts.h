// Parallel layouts that `scaletrain prove` compares with one rank.
#pragma once

#include <string>
#include <vector>

#include "lib/recipe/sections/parallel/parallel.h"

namespace scaletrain::launcher {

struct ProvenLayout {
  std::string name;  // "tensor-2", "shard-2-optimizer"
  int ranks = 1;
  recipe::Parallel parallel;

  // Data-parallel ranks.
  int readers() const;
};

// Each parallel strategy on 2 ranks, and pairs of strategies on 4.
std::vector<ProvenLayout> proven_layouts();

}  // namespace scaletrain::launcher
