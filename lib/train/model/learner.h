// Model and optimizer of a run on this rank, with the learning rate schedule.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
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
#include "lib/train/model/buffers.h"
#include "lib/train/model/tensor_layout.h"
#include "lib/train/rules/length.h"
#include "lib/units/named_parameter.h"
#include "lib/units/shard.h"

namespace scaletrain::recipe {
struct Recipe;
}

namespace scaletrain::train {

// Numbers of parameters.
struct ModelSize {
  std::int64_t trained = 0, frozen = 0;
};

struct Learner {
  std::shared_ptr<nn::Model> model;
  // Tensor-parallel shards, without tensors: the slices of the full tensors that its parameters
  // are. counts_whole: this rank counts the tensors that every tensor-parallel rank has.
  units::Shards parts = {};
  bool counts_whole = true;
  std::map<std::string, double> lr_scales;  // factors by parameter (lib/train/model/freeze.h)
  std::vector<recipe::OptimizerGroup> groups;
  std::unique_ptr<precision::Precision> precision;
  std::unique_ptr<optim::Schedule> schedule;
  std::unique_ptr<optim::Optimizer> optimizer;  // for parameters that this rank owns
  bool is_trained = true;                       // until end_training()

  NamedTensors buffers() const;  // the model's own
  NamedTensors tensors() const;  // its parameters and buffers
  units::Shards shards() const;  // its parameters and buffers as tensor-parallel shards
  // Describes a parameter by its full shape and the slices of it that this rank has.
  units::NamedParameter described(const std::string& name, const at::Tensor& parameter) const;
  // Returns weights, by name, that evaluation and saved models use in place of the trained ones
  // (lib/optim/optimizer.h).
  NamedTensors evaluation_weights() const;
  bool has_evaluation_weights() const;
  // Ends training and makes these tensors the parameters. For a sharded model, `own` has this
  // rank's shards.
  void end_training() { end_training(tensors()); }
  void end_training(const NamedTensors& own);
  // Trained parameters with their full shapes, by which weight decay is decided. Throws
  // core::RecipeError for an optimizer group that matches no parameter.
  std::vector<units::NamedParameter> parameters() const;
  // Counts the full model's parameters; call before they are sharded (Placement::start).
  ModelSize size() const;
};

// Builds the recipe's model, freshly initialised, without the optimizer. `global_batch`: batch size
// that may scale the learning rate; `models` makes the model, on a mesh as far as this rank has it.
Learner build_learner(const recipe::Recipe& recipe, at::Device device, const Length& length,
                      std::int64_t global_batch,
                      const nn::Factories& models = nn::built_in_factories(),
                      const dist::Mesh* mesh = nullptr, Values values = Values::kInitial);

// Warns of a warmup that is not shorter than the training: fine for a trial of a few steps, but a
// mistake in a longer run, which then learns little.
void warn_of_warmup(const recipe::Recipe& recipe, const Length& length);

}  // namespace scaletrain::train
