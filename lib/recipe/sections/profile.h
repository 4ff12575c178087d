// A trace of some steps.
#pragma once

#include <cstdint>
#include <optional>

#include "lib/recipe/sections/section.h"

namespace scaletrain::recipe {

// Steps of a process, as a resume has its own (lib/train/rules/profile.h).
struct Profile {
  std::int64_t after = 10;  // so many that are not in it
  std::int64_t steps = 3;   // so many that are
};

TypePtr describe(std::optional<Profile>& value);

}  // namespace scaletrain::recipe
