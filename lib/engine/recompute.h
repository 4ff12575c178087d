// Activations that are computed again instead of kept (Chen et al., Training Deep Nets with
// Sublinear Memory Cost, 2016): of a unit only its input stays, and the first of its tensors that
// backward asks for runs it once more.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "lib/recipe/sections/recompute.h"
#include "lib/units/unit.h"

namespace scaletrain::engine {

// Runs a unit. `again`: in backward, and perhaps on another thread; then it must compute the same,
// with the same random numbers and in the same precision, and may be left by an exception when all
// that backward needs is there.
using RunUnit = std::function<units::Flow(units::Flow input, bool again)>;

// What `run` gives of `input`, whose gradients are the same bits as without it. Throws
// core::InternalError where `run` changes its input in place; so does backward, where the second
// run saves fewer tensors than the first.
units::Flow run_for_recompute(RunUnit run, const units::Flow& input);

// For each unit whether it is one of `recompute`. The last one never is: its backward is the first,
// when all it has computed is still there. Throws core::RecipeError ("/recompute/match: ...") for a
// pattern that fits no unit, and where nothing would be run again.
std::vector<bool> recomputed_units(const std::optional<recipe::Recompute>& recompute,
                                   const std::vector<units::Unit>& units);

}  // namespace scaletrain::engine
