// Models that a custom worker program adds (docs/internals/own-model.md).
#pragma once

#include <vector>

#include "lib/nn/factory.h"
#include "lib/recipe/catalog/lists.h"

namespace scaletrain::app {

struct OwnModel {
  recipe::Row row;
  nn::Factory make = nullptr;
};

// Models of a worker in addition to lib/recipe/catalog/models.def.
struct Additions {
  std::vector<OwnModel> models;
};

}  // namespace scaletrain::app
