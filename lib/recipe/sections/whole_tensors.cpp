#include "lib/recipe/sections/whole_tensors.h"

#include "lib/recipe/catalog/lists.h"

namespace scaletrain::recipe {

bool needs_whole_tensors(const Optimizer& optimizer) {
  if (optimizer.centralize_gradients) return true;
  const Row* const row = optimizers().find(optimizer.name);  // none where the name is wrong
  return row != nullptr && row->has_rule(Rule::Kind::kWholeTensors);
}

}  // namespace scaletrain::recipe
