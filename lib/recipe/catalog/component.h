// A thing chosen by name from a list: "sgd", or {"name": "sgd", "momentum": 0.8}.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "lib/recipe/catalog/lists.h"
#include "lib/recipe/schema/object.h"

namespace scaletrain::recipe {

// Adds the keys that every row of a list has: lr of an optimizer. The row is nullptr where it is
// not known.
using CommonKeys = std::function<void(Object&, const Row*)>;

// `value.name` before reading is the default; where it is empty, the name is required.
TypePtr component(
    Component& value, const List& list, CommonKeys common = [](Object&, const Row*) {});

// A list of them, without common keys; a text is short for the list of that name.
TypePtr components(std::vector<Component>& value, const List& list,
                   const std::vector<Preset>& presets);

// The row's own keys, bound to the options of `value`, which was chosen from it.
std::unique_ptr<Object> row_keys(Component& value, const Row& row);

}  // namespace scaletrain::recipe
