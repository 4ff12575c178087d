// Interface of optimizers, which update the weights with their gradients.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lib/recipe/sections/optimizer.h"
#include "lib/units/named_parameter.h"

namespace scaletrain::optim {

using units::NamedParameter;

class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // One update with the gradients as they are, at learning rate `lr` times each parameter's
  // lr_scale. `found_inf`, a 0-dim float on the parameters' device, is 1 where a gradient is not
  // finite: then parameters and state stay as they are, bit for bit; otherwise it is 0. No value is
  // read to the host. May change the gradients. Throws core::InternalError naming a parameter
  // without a gradient.
  virtual void step(double lr, const std::optional<at::Tensor>& found_inf) = 0;
  void step(double lr) { step(lr, std::nullopt); }

  // Waits for what a step has left to be done beside the training. Before parameters in the host's
  // memory are read, other than through their `on_host`; what is called here of the optimizer waits
  // itself.
  virtual void settle() {}

  // Sets the weight decay, from the next step on, of all parameters that have the recipe's; for a
  // recipe with a weight_decay_end.
  virtual void set_weight_decay(double weight_decay) = 0;

  // State tensors by name, "exp_avg/PARAMETER" and so on; the optimizer's own tensors, so that
  // copying into them restores the state. Complete before the first step.
  virtual std::map<std::string, at::Tensor> state() = 0;

  // After state() was filled from a checkpoint: how many steps were tried before that, those that
  // were left out among them.
  virtual void resume_at(std::int64_t /*step*/) {}

  // State tensors, by their names in state(), that do not have one element for each element of
  // their parameter as this rank has it: block scales, bases, averages of rows. Each has a shape of
  // its own and is whole on the rank that has it. Where ranks have parts of tensors and one of them
  // updates the whole, it names the state of all these ranks, alike on each of them.
  virtual std::set<std::string> whole_state() { return {}; }

  // Returns, by name and as new tensors, the weights for evaluation and saving that differ from the
  // training weights (schedule-free optimizers). All ranks that have parts of tensors call it at
  // once.
  virtual std::map<std::string, at::Tensor> evaluation_weights() { return {}; }
  // True if the above has anything for parameters of this optimizer; costs nothing.
  virtual bool has_evaluation_weights() const { return false; }
};

// Throws core::RecipeError where the optimizer finds nothing that it is for among a model's
// parameters.
void check_optimizer(const recipe::Optimizer& config,
                     const std::vector<NamedParameter>& parameters);

std::unique_ptr<Optimizer> make_optimizer(const recipe::Optimizer& config,
                                          std::vector<NamedParameter> parameters);

struct HostOptions {
  // Folder of a file that stores the state (lib/optim/state_file.h); "": the state is in memory.
  std::filesystem::path folder = {};
  // Parameters are updated in portions of about so many elements: of a device's, gradients of the
  // next portion and weights of the last are under way meanwhile, and so is state in a file.
  std::int64_t portion = std::int64_t{16} << 20;
};

// CPU offload: the optimizer's state, copies of the parameters and the update are on the host. On
// a device a step waits for the gradients to arrive there. Parameters that are changed otherwise
// before the first step are copied then. Parameters that stay on the host (`on_host`) are not
// copied; if all of them do, a step only begins: a thread waits for the gradients and updates,
// while the caller goes on.
std::unique_ptr<Optimizer> make_host_optimizer(const recipe::Optimizer& config,
                                               const std::vector<NamedParameter>& parameters,
                                               const HostOptions& options = {});
// Like the above, with the optimizer that `make` makes for the copies.
using MakeOptimizer =
    std::function<std::unique_ptr<Optimizer>(std::vector<NamedParameter> parameters)>;
std::unique_ptr<Optimizer> make_host_optimizer(const MakeOptimizer& make,
                                               const std::vector<NamedParameter>& parameters,
                                               const HostOptions& options = {});

// `inner`, made of `parameters`, behind gradients of two dimensions or more from which the mean
// over all but the first is taken away, in place. Throws core::RecipeError where a parameter is a
// piece.
std::unique_ptr<Optimizer> with_centralized_gradients(std::unique_ptr<Optimizer> inner,
                                                      std::vector<NamedParameter> parameters);

// The weight decay of step `step` (from 0) of `total`, where the recipe has an end for it:
// end + (weight_decay - end) * (1 + cos(pi * step / total)) / 2 (Caron et al., Emerging Properties
// in Self-Supervised Vision Transformers, 2021, appendix C).
std::optional<double> scheduled_weight_decay(const recipe::Optimizer& config, std::int64_t step,
                                             std::int64_t total);

// The learning rate of the recipe for a global batch: lr, or lr * global / lr_base_batch (Goyal et
// al., Accurate, Large Minibatch SGD, 2017, section 2.1), or with the root of that factor
// (Krizhevsky, One weird trick for parallelizing convolutional neural networks, 2014, section 5).
double scaled_lr(const recipe::Optimizer& config, std::int64_t global_batch);

}  // namespace scaletrain::optim
