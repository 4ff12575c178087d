// Loss function.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/recipe/catalog/task.h"
#include "lib/recipe/catalog/values.h"
#include "lib/recipe/sections/section.h"

namespace scaletrain::recipe {

struct Loss : Component {
  double label_smoothing = 0;
  std::vector<double> class_weights;  // per class; empty: all equal
  std::int64_t chunk = 0;             // tokens whose logits are in memory at a time; 0: all
};

TypePtr describe(Loss& value);

// Checks that the loss suits `task`, that class weights match `classes`, and that only token tasks
// use chunks.
void check(const Loss& loss, const TaskRow& task, std::int64_t classes, const Node& tree,
           Problems& problems);

}  // namespace scaletrain::recipe
