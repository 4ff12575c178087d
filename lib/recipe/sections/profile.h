// Profiler: traces some steps.
#pragma once

#include <cstdint>
#include <optional>

#include "lib/recipe/sections/section.h"

namespace scaletrain::recipe {

// Steps are counted from the start of the process, also after a resume (lib/train/rules/profile.h).
struct Profile {
  std::int64_t after = 10;  // steps before the trace
  std::int64_t steps = 3;   // steps in the trace
};

TypePtr describe(std::optional<Profile>& value);

}  // namespace scaletrain::recipe
