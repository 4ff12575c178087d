// Models by name. A model is single-device code: it never sees rank, precision or optimizer.
#pragma once

#include <ATen/core/Generator.h>
#include <torch/nn/module.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lib/nn/factory.h"
#include "lib/recipe/sections/model.h"
#include "lib/units/tensor_rule.h"
#include "lib/units/unit.h"
#include "lib/units/weight_rules.h"

namespace scaletrain::nn {

class Model : public torch::nn::Module {
 public:
  // Units of the model, in order: a stem, blocks, a head. They refer to this model, which
  // outlives them, and together they name each of its parameters and buffers.
  //
  // The first gets the input: images [batch, 3, image_size, image_size] float, normalised, or
  // tokens [batch, length] int64. The last returns logits, [batch, num_classes] or [batch, length,
  // vocabulary].
  virtual std::vector<units::Unit> units() = 0;

  // The units' fold.
  at::Tensor forward(const at::Tensor& input, const units::Context& context = {});

  // Fills `logical`, the whole of the parameter `name` as a plain fp32 tensor on the CPU, with what
  // it starts from, drawn from `generator` alone. make_model() calls it once for each parameter.
  // Unless a model says otherwise, its layers do (nn::Layer). Throws core::InternalError for a
  // parameter that no layer has.
  virtual void initialise(const std::string& name, const at::Tensor& logical,
                          at::Generator generator) const;

  // True if the parameter of this name has weight decay (lib/optim/optimizer.h).
  virtual bool decays(const std::string& /*name*/) const { return true; }

  // How its layers can be cut over ranks. Empty: they cannot be. What is cut stands between the
  // first unit and the last one, but for a vocabulary.
  virtual std::vector<units::TensorRule> tensor_plan() const { return {}; }

  // Rules for loading pretrained weights: the tensors that can be adapted, and the head.
  virtual units::WeightRules weight_rules() const { return {}; }

  // The names of its tensors from the input to the head, for learning rates by layer; a tied tensor
  // is where it comes first. Unless a model says otherwise, its units.
  virtual std::vector<std::vector<std::string>> layers();

  // Names of what end_step() gives: numbers for the metrics ("balance_loss").
  virtual std::vector<std::string> statistics() const { return {}; }

  // Called once when the optimizer has made a step, on all ranks that train on other samples:
  // `sum_over_ranks` is units::Context's, empty for one. Buffers that follow from what a step has
  // counted move here, on all ranks alike; a step that is left out gives them back. Its
  // statistics(), one dimension of doubles on the device, the same on all ranks; undefined without.
  virtual at::Tensor end_step(
      const std::function<void(const at::Tensor& values)>& /*sum_over_ranks*/) {
    return {};
  }

 protected:
  // A unit whose tensors are those of the modules `paths` ("layer1.0") and the model's own tensors
  // of these names ("cls_token").
  units::Unit unit(std::string name, const std::vector<std::string>& paths,
                   std::function<units::Flow(units::Flow, const units::Context&)> run) const;
};

// Builds and initialises the recipe's model on the CPU. What a parameter starts from is a function
// of `seed` and its name: it depends neither on other parameters nor on how a layout cuts it.
// `image_size` is /data/image_size; `factories` has the model's name.
std::shared_ptr<Model> make_model(const recipe::Model& model, std::int64_t image_size,
                                  std::uint64_t seed,
                                  const Factories& factories = built_in_factories());

// Returns the local shard of a parameter's initial value, a plain fp32 tensor on the CPU.
using KeepPart = std::function<at::Tensor(const std::string& name, const at::Tensor& logical)>;

// Fills the parameters of a blank model, with `keep` by a part of each value; at no time two whole
// ones are there.
void fill(Model& blank, std::uint64_t seed, const KeepPart& keep = nullptr);

// Like make_model(), with uninitialised parameters: for their names and shapes. Their memory is not
// used before something writes to it.
std::shared_ptr<Model> make_blank_model(const recipe::Model& model, std::int64_t image_size,
                                        const Factories& factories = built_in_factories());

}  // namespace scaletrain::nn
