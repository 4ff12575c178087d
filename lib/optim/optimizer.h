// Interface of optimizers.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/recipe/sections/optimizer.h"
#include "lib/units/named_parameter.h"

namespace scaletrain::optim {

using units::NamedParameter;

class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // Updates the parameters with their gradients, at learning rate `lr` times each parameter's
  // lr_scale. `found_inf`, a 0-dim float on the parameters' device, is 1 if a gradient is not
  // finite: then parameters and state stay bitwise unchanged; otherwise it is 0. No value is read
  // to the host. May change the gradients. Throws core::InternalError naming a parameter without a
  // gradient.
  virtual void step(double lr, const std::optional<at::Tensor>& found_inf) = 0;
  void step(double lr) { step(lr, std::nullopt); }

  // Waits for the part of a step that runs asynchronously. Call before reading parameters in host
  // memory, except through their `on_host`; this class's own functions wait themselves.
  virtual void settle() {}

  // Sets the weight decay from the next step on, for parameters that use the recipe's value; for a
  // recipe with a weight_decay_end.
  virtual void set_weight_decay(double weight_decay) = 0;

  // Returns the state by name, "exp_avg/PARAMETER" and so on; the optimizer's own tensors, so that
  // copying into them restores the state. Complete before the first step. State with the elements
  // of its parameter is sharded like the parameter. All other state (block scales, bases, row
  // averages) is unsharded, and complete on its rank. If one rank updates a full tensor for several
  // ranks, all of them return entries for its state, and only the rank that updates it has the
  // elements.
  virtual units::Shards state() = 0;

  // Call after filling state() from a checkpoint; `step`: number of steps before it, including
  // skipped ones.
  virtual void resume_at(std::int64_t /*step*/) {}

  // Returns, by name and as new tensors, the weights for evaluation and saving that differ from the
  // training weights (schedule-free optimizers). All ranks that have parts of tensors call it at
  // once.
  virtual std::map<std::string, at::Tensor> evaluation_weights() { return {}; }
  // True if evaluation_weights() is not empty; costs nothing.
  virtual bool has_evaluation_weights() const { return false; }
};

// Throws core::RecipeError if the model has no parameter that the optimizer is made for.
void check_optimizer(const recipe::Optimizer& config,
                     const std::vector<NamedParameter>& parameters);

std::unique_ptr<Optimizer> make_optimizer(const recipe::Optimizer& config,
                                          std::vector<NamedParameter> parameters);

struct HostOptions {
  // Folder of a file that stores the state (lib/optim/state_file.h); "": the state is in memory.
  std::filesystem::path folder = {};
  // Number of elements in a portion: the update runs portion by portion, overlapped with copying
  // the next gradients and the last weights between device and host, and state to and from a file.
  std::int64_t portion = std::int64_t{16} << 20;
};

// CPU offload: optimizer state, copies of the parameters and the update are on the host. On a
// device a step waits until the gradients have arrived there. Parameters that change before the
// first step are copied at that step. Parameters that stay on the host (`on_host`) are not copied;
// if all of them do, a step returns at once while a thread waits for the gradients and updates.
std::unique_ptr<Optimizer> make_host_optimizer(const recipe::Optimizer& config,
                                               const std::vector<NamedParameter>& parameters,
                                               const HostOptions& options = {});
// Like the above, with an optimizer made by `make` for the copies.
using MakeOptimizer =
    std::function<std::unique_ptr<Optimizer>(std::vector<NamedParameter> parameters)>;
std::unique_ptr<Optimizer> make_host_optimizer(const MakeOptimizer& make,
                                               const std::vector<NamedParameter>& parameters,
                                               const HostOptions& options = {});

// Gradient centralization around `inner`: subtracts from each gradient with two or more dimensions
// its mean over all but the first, in place. Throws core::RecipeError for a sharded parameter.
std::unique_ptr<Optimizer> with_centralized_gradients(std::unique_ptr<Optimizer> inner,
                                                      std::vector<NamedParameter> parameters);

// Returns the weight decay at step `step` (from 0) of `total`, if the recipe has a final value: end
// + (weight_decay - end) * (1 + cos(pi * step / total)) / 2 (Caron et al., Emerging Properties in
// Self-Supervised Vision Transformers, 2021, appendix C).
std::optional<double> scheduled_weight_decay(const recipe::Optimizer& config, std::int64_t step,
                                             std::int64_t total);

// Returns the recipe's learning rate for a global batch: lr, lr * global / lr_base_batch (Goyal et
// al., Accurate, Large Minibatch SGD, 2017, section 2.1), or lr times the square root of that
// factor (Krizhevsky, One weird trick for parallelizing convolutional neural networks, 2014,
// section 5).
double scaled_lr(const recipe::Optimizer& config, std::int64_t global_batch);

}  // namespace scaletrain::optim
