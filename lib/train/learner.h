// The model, and what changes it.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lib/dist/mesh.h"
#include "lib/nn/model.h"
#include "lib/optim/optimizer.h"
#include "lib/optim/schedule.h"
#include "lib/precision/precision.h"
#include "lib/recipe/sections/optimizer.h"
#include "lib/train/buffers.h"
#include "lib/train/length.h"
#include "lib/train/tensor_layout.h"
#include "lib/units/named_parameter.h"
#include "lib/units/tensor_part.h"

namespace scaletrain::recipe {
struct Recipe;
}

namespace scaletrain::train {

struct Learner {
  std::shared_ptr<nn::Model> model;
  // Which parts of the whole ones its tensors are, where tensor ranks share a model, and whether
  // this rank is the one of them that counts those that all have.
  units::TensorParts parts = {};
  bool counts_whole = true;
  std::map<std::string, double> lr_scales;  // of parameters (lib/train/freeze.h)
  std::vector<recipe::OptimizerGroup> groups;
  std::unique_ptr<precision::Precision> precision;
  std::unique_ptr<optim::Schedule> schedule;
  std::unique_ptr<optim::Optimizer> optimizer;  // of what this rank owns
  bool is_trained = true;                       // until end_training()

  NamedTensors buffers() const;  // the model's own
  NamedTensors tensors() const;  // its parameters and buffers
  // What its parameters are evaluated and saved with in place of what they are trained with, by
  // name (lib/optim/optimizer.h).
  NamedTensors evaluation_weights() const;
  bool has_evaluation_weights() const;
  // Makes these the parameters, for good; of what ranks hold together, `own` is this rank's.
  void end_training() { end_training(tensors()); }
  void end_training(const NamedTensors& own);
  // Its parameters that are trained, by their whole shapes: what decays is decided by these. Throws
  // core::RecipeError for a group that no parameter fits.
  std::vector<units::NamedParameter> parameters() const;
};

// What the recipe asks for, freshly initialised, without the optimizer. `global_batch`: what the
// learning rate may be scaled by; `models` makes the model, on a mesh as far as this rank has it.
Learner build_learner(const recipe::Recipe& recipe, at::Device device, const Length& length,
                      std::int64_t global_batch,
                      const nn::Factories& models = nn::built_in_factories(),
                      const dist::Mesh* mesh = nullptr, Values values = Values::kInitial);

// Warns of a warmup that does not end before the training does: a trial of a few steps is a fair
// use of a recipe; the same by mistake trains nothing.
void warn_of_warmup(const recipe::Recipe& recipe, const Length& length);

}  // namespace scaletrain::train
