// How gradients are made smaller for the exchange between replicas.
#pragma once

#include <cstdint>
#include <string>

#include "lib/recipe/sections/section.h"

namespace scaletrain::recipe {

struct Compress {
  std::string name;         // "bf16", "fp16", "powersgd", "onebit", "int8"
  std::int64_t rank = 4;    // of PowerSGD's factors
  std::int64_t warmup = 0;  // steps that exchange as without
};

}  // namespace scaletrain::recipe
