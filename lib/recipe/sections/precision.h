// Compute dtype (mixed precision).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/recipe/catalog/values.h"
#include "lib/recipe/sections/model.h"
#include "lib/recipe/sections/optimizer.h"
#include "lib/recipe/sections/sam.h"
#include "lib/recipe/sections/section.h"

namespace scaletrain::recipe {

struct Precision : Component {
  std::vector<std::string>
      keep;  // for fp8: patterns (lib/core/text/glob.h) of layers that stay in bf16
};

TypePtr describe(Precision& value);

// Checks that bf16 weights and fp8 layers fit the model, the optimizer and sam.
void check(const Precision& precision, const Model& model, const Node& tree, Problems& problems);
void check(const Precision& precision, const Optimizer& optimizer, const std::optional<Sam>& sam,
           const Node& tree, Problems& problems);

}  // namespace scaletrain::recipe
