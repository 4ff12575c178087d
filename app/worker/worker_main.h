// A worker's whole main: ours, and that of a program with models of somebody's own
// (docs/internals/own-model.md). It includes no header of LibTorch.
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

// Executes the command of `argv` (a usage text names them) and ends the process with its exit code.
[[noreturn]] int worker_main(int argc, char** argv, const Additions& additions);

}  // namespace scaletrain::app
