// Silent data corruption: the comparison of data-parallel replicas.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "lib/recipe/sections/section.h"

namespace scaletrain::recipe {

struct Integrity {
  std::int64_t every = 50;       // steps between comparisons
  std::string action = "stop";   // stop, restore
  std::string products = "off";  // off, sampled, every
};

TypePtr describe(std::optional<Integrity>& value);

}  // namespace scaletrain::recipe
