// Models that a program of somebody's own adds to a worker (docs/internals/own-model.md).
#pragma once

#include <vector>

#include "lib/nn/factory.h"
#include "lib/recipe/catalog/lists.h"

namespace scaletrain::app {

struct OwnModel {
  recipe::Row row;
  nn::Factory make = nullptr;
};

// Models of a worker beside those of lib/recipe/catalog/models.def.
struct Additions {
  std::vector<OwnModel> models;
};

}  // namespace scaletrain::app
