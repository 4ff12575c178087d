// Random numbers of other shapes than uniform, from the same counter-based draws.
#pragma once

#include "lib/core/philox.h"

namespace scaletrain::core {

// In [low, high).
double uniform(Philox& draws, double low, double high);

// True with this probability.
bool happens(Philox& draws, double probability);

// Standard normal; Box and Muller, A note on the generation of random normal deviates, 1958.
double normal(Philox& draws);

// Beta(alpha, alpha) in [0, 1], alpha > 0, from two gamma draws; Marsaglia and Tsang, A simple
// method for generating gamma variables, 2000.
double symmetric_beta(Philox& draws, double alpha);

}  // namespace scaletrain::core
