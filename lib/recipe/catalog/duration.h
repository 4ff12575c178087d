// Lengths of training as keys: {"steps": n}, {"epochs": n} or {"minutes": n}.
#pragma once

#include <vector>

#include "lib/recipe/catalog/values.h"
#include "lib/recipe/schema/object.h"

namespace scaletrain::recipe {

using Units = std::vector<Duration::Unit>;

const Units& any_unit();

// Returns "steps", "epochs" or "minutes".
std::string unit_name(Duration::Unit unit);

// Adds a key for each unit; exactly one of them must be written.
void add_units(Object& keys, Duration& value, const Units& units, bool may_be_zero,
               const std::string& help);

// Type of an object with these keys.
TypePtr duration(Duration& value, const Units& units, bool may_be_zero = false);

}  // namespace scaletrain::recipe
