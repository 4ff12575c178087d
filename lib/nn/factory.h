// Model factories, for code that lists models without knowing them: needs no header of LibTorch.
#pragma once

#include <cstdint>
#include <memory>

#include "lib/core/registry.h"

namespace scaletrain::recipe {
struct Model;  // lib/recipe/sections/model.h
}

namespace scaletrain::nn {

class Model;  // lib/nn/model.h

// Makes the recipe's model on the CPU, not initialised; the second argument is /data/image_size.
using Factory = std::shared_ptr<Model> (*)(const recipe::Model&, std::int64_t);

using Factories = core::Registry<Factory>;

// Returns the factories of models.def.
const Factories& built_in_factories();

}  // namespace scaletrain::nn
