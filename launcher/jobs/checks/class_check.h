// The class names of a training set, as far as the launcher can see them, against the model.
#pragma once

#include <optional>

#include "lib/format/tar/class_names.h"

namespace scaletrain::recipe {
struct Recipe;
}

namespace scaletrain::launcher {

// The class folders of data.train, or classes.json beside its shards, with the file or folder as
// the owner; of several sources the first that names classes. nullopt for remote sets, other
// tasks than classification, and where there are no names. Throws core::DataError for a
// classes.json that is no list of names.
std::optional<format::ClassNames> classes_of_training(const recipe::Recipe& recipe);

// Throws core::RecipeError where the training set has more classes than the model; warns where the
// model has more.
void check_class_count(const recipe::Recipe& recipe);

}  // namespace scaletrain::launcher
