// Catalog of the models that a worker can train: the rows of models.def, and those of a custom
// worker. A recipe is read with the catalog of its worker.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lib/recipe/catalog/lists.h"

namespace scaletrain::recipe {

struct Catalog {
  List models;
};

using CatalogPtr = std::shared_ptr<const Catalog>;

// Returns the catalog of models.def.
CatalogPtr built_in_catalog();

// Returns the catalog of models.def and `rows`. Throws core::UsageError ("model my_model") for an
// invalid row: a name that exists already, a default out of range, or a condition on a key that the
// row does not have.
CatalogPtr catalog_with(const std::vector<Row>& rows);

}  // namespace scaletrain::recipe
