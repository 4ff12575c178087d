// Tensor parallelism of a model.
#pragma once

#include <memory>
#include <vector>

#include "lib/dist/mesh.h"
#include "lib/nn/model.h"
#include "lib/task/task.h"
#include "lib/units/shard.h"
#include "lib/units/unit.h"

namespace scaletrain::recipe {
struct Recipe;
}

namespace scaletrain::train {

// Initial values of a model's parameters. kInitial: the values at the start of training. kBlank:
// memory that is not used before it is written, so that a model larger than the machine's memory
// can be examined.
enum class Values { kInitial, kBlank };

struct PartOfModel {
  std::shared_ptr<nn::Model> model;
  units::Shards parts;  // without tensors: its slices of the full tensors
};

// Builds this rank's tensor-parallel part of the recipe's model on the CPU, freshly initialised:
// each parameter is the slice of the value that one rank would have. Without `mesh`, or with a
// tensor axis of 1, builds the full model. `mesh` must outlive the model. Throws core::RecipeError
// ("/parallel/tensor: ...") if the model cannot be divided among so many ranks.
PartOfModel make_part(const recipe::Recipe& recipe, const dist::Mesh* mesh,
                      const nn::Factories& models, Values values = Values::kInitial);

// Returns the model's units with the parallel layout. Call when `model` is complete except for
// values: parameters frozen by then get no gradient. `task` receives the logits as the units return
// them.
std::vector<units::Unit> units_of_part(const recipe::Recipe& recipe, const dist::Mesh& mesh,
                                       const PartOfModel& part, task::Task& task);

}  // namespace scaletrain::train
