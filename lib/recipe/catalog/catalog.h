// The models that a worker can train: the rows of models.def and those that a worker of somebody's
// own adds. A recipe is read by the catalog of its worker.
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

// models.def.
CatalogPtr built_in_catalog();

// models.def and `rows`. Throws core::UsageError ("model my_model") for a row that cannot be: a
// name that is there already, a default out of its range, a condition on a key that the row has
// not.
CatalogPtr catalog_with(const std::vector<Row>& rows);

}  // namespace scaletrain::recipe
