// How often the replicas exchange.
#pragma once

#include <cstdint>
#include <string>

#include "lib/recipe/sections/section.h"

namespace scaletrain::recipe {

// DiLoCo's optimizer of what the replicas have learned since they met last: SGD with Nesterov
// momentum.
struct OuterOptimizer {
  double lr = 0.7, momentum = 0.9;
};

struct Sync {
  std::string name = "every_step";  // "every_step", "periodic", "diloco"
  std::int64_t steps = 1;           // between two exchanges
  OuterOptimizer outer = {};        // diloco's
  std::int64_t fragments = 1;       // diloco's: parts of the model that are exchanged in turn
};

}  // namespace scaletrain::recipe
