// The models of one worker: what a recipe may name, and what makes them.
#pragma once

#include "app/worker/additions.h"
#include "lib/recipe/catalog/catalog.h"

namespace scaletrain::app {

struct Models {
  recipe::CatalogPtr catalog;
  nn::Factories factories;
};

// models.def's and the additions. Throws core::UsageError for a row that cannot be.
Models models_of(const Additions& additions);

}  // namespace scaletrain::app
