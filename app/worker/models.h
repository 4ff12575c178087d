// The models of a worker: their recipe names and factories.
#pragma once

#include "app/worker/additions.h"
#include "lib/recipe/catalog/catalog.h"

namespace scaletrain::app {

struct Models {
  recipe::CatalogPtr catalog;
  nn::Factories factories;
};

// Returns the models of models.def and the additions. Throws core::UsageError for an invalid row.
Models models_of(const Additions& additions);

}  // namespace scaletrain::app
