// A component: something chosen by name from a list, "sgd" or {"name": "sgd", "momentum": 0.8}.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "lib/recipe/catalog/lists.h"
#include "lib/recipe/schema/object.h"

namespace scaletrain::recipe {

// Adds the keys that every row of a list has, such as `lr` of an optimizer. The row is nullptr if
// its name is not known.
using CommonKeys = std::function<void(Object&, const Row*)>;

// Type of a component. `value.name` before reading is the default; if it is empty, the name is
// required.
TypePtr component(
    Component& value, const List& list, CommonKeys common = [](Object&, const Row*) {});

// Type of a list of components without common keys; a single text selects the preset of that name.
TypePtr components(std::vector<Component>& value, const List& list,
                   const std::vector<Preset>& presets);

// Returns the row's own keys, bound to the options of `value`, which has the row's name.
std::unique_ptr<Object> row_keys(Component& value, const Row& row);

}  // namespace scaletrain::recipe
