// Compares the class names of a training set, as far as the launcher can see them, with the model.
#pragma once

#include <optional>

#include "lib/format/tar/class_names.h"

namespace scaletrain::recipe {
struct Recipe;
}

namespace scaletrain::launcher {

// Returns the class folders of data.train, or classes.json beside its shards, with the file or
// folder as owner; for several sources, those of the first that names classes. nullopt for remote
// sets, tasks other than classification, and sets without names. Throws core::DataError for a
// classes.json that is not a list of names.
std::optional<format::ClassNames> classes_of_training(const recipe::Recipe& recipe);

// Throws core::DataError if a held-out set, or a further source of the training set, has a class
// name that the training set does not have, as the workers do. Ignores sets without names.
void check_class_names(const recipe::Recipe& recipe);

// Throws core::RecipeError if the training set has more classes than the model; warns if the model
// has more.
void check_class_count(const recipe::Recipe& recipe);

}  // namespace scaletrain::launcher
