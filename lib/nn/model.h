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

  // Runs all units in order.
  at::Tensor forward(const at::Tensor& input, const units::Context& context = {});

  // Fills `logical`, the full parameter `name` as an fp32 tensor on the CPU, with its initial
  // value, drawing only from `generator`. make_model() calls it once for each parameter. By default
  // the model's layers do it (nn::Layer). Throws core::InternalError for a parameter that no layer
  // has.
  virtual void initialise(const std::string& name, const at::Tensor& logical,
                          at::Generator generator) const;

  // True if the parameter of this name has weight decay (lib/optim/optimizer.h).
  virtual bool decays(const std::string& /*name*/) const { return true; }

  // Tensor-parallel rules of its layers; empty: not supported. Sharded tensors are between the
  // first and the last unit, except a vocabulary.
  virtual std::vector<units::TensorRule> tensor_plan() const { return {}; }

  // Rules for loading pretrained weights: the tensors that can be adapted, and the head.
  virtual units::WeightRules weight_rules() const { return {}; }

  // Returns the names of its tensors by layer, from the input to the head, for layer-wise learning
  // rates; a tied tensor belongs to its first layer. Default: its units.
  virtual std::vector<std::vector<std::string>> layers();

  // Names of the values that end_step() returns, for the metrics ("balance_loss").
  virtual std::vector<std::string> statistics() const { return {}; }

  // Called once after each optimizer step, on all data-parallel ranks; `sum_over_ranks` is that of
  // units::Context, empty for one rank. Updates buffers that depend on counts of the step, equally
  // on all ranks; a skipped step restores them. Returns the values of statistics(), one dimension
  // of doubles on the device, the same on all ranks; undefined without statistics.
  virtual at::Tensor end_step(
      const std::function<void(const at::Tensor& values)>& /*sum_over_ranks*/) {
    return {};
  }

 protected:
  // Makes a unit from the modules `paths` ("layer1.0") and tensors of the model itself
  // ("cls_token").
  units::Unit unit(std::string name, const std::vector<std::string>& paths,
                   std::function<units::Flow(units::Flow, const units::Context&)> run) const;
};

// Builds and initialises the recipe's model on the CPU. A parameter's initial value depends only on
// `seed` and its name, not on other parameters or the parallel layout. `image_size` is
// /data/image_size; `factories` has the model's name.
std::shared_ptr<Model> make_model(const recipe::Model& model, std::int64_t image_size,
                                  std::uint64_t seed,
                                  const Factories& factories = built_in_factories());

// Returns the local shard of a parameter's initial value, a plain fp32 tensor on the CPU.
using KeepPart = std::function<at::Tensor(const std::string& name, const at::Tensor& logical)>;

// Initialises the parameters of a blank model; `keep` returns the part of each value to store. At
// most one full parameter is in memory at a time.
void fill(Model& blank, std::uint64_t seed, const KeepPart& keep = nullptr);

// Like make_model(), with uninitialised parameters, for their names and shapes. Their memory is not
// touched before something writes to it.
std::shared_ptr<Model> make_blank_model(const recipe::Model& model, std::int64_t image_size,
                                        const Factories& factories = built_in_factories());

}  // namespace scaletrain::nn
