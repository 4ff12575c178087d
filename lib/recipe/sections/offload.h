// What leaves a device for its host's memory as long as it is not needed.
#pragma once

#include <optional>

#include "lib/recipe/sections/section.h"

namespace scaletrain::recipe {

struct Offload {
  bool activations = false;  // lib/engine/offload.h
  bool optimizer = false;    // lib/optim/host_optimizer.cpp
};

TypePtr describe(std::optional<Offload>& value);

}  // namespace scaletrain::recipe
