// A parameter, or the local shard of one, as optimizers and checkpoints use it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/units/shard.h"

namespace scaletrain::units {

class HostUpdate;

struct NamedParameter {
  std::string name;   // name of the full parameter in the model
  at::Tensor tensor;  // its .grad() holds the gradient
  // The shard that `tensor` is, described without a tensor; nullopt: the full parameter.
  std::optional<Shard> shard = {};
  // Index of the first element of `tensor` in the parameter as its layer has it, which the parallel
  // strategy divides: random numbers and blocks of quantized state are counted from there.
  std::int64_t begin = 0;
  // True if the model applies weight decay to it.
  bool decays = true;
  // True if it belongs to the classifier head, whose output has a value for each class.
  bool is_head = false;
  // Factor on the optimizer's learning rate.
  double lr_scale = 1;
  // Weight decay that overrides the optimizer's, and all rules that exempt parameters.
  std::optional<double> weight_decay = {};
  // True if it belongs to a hidden layer: neither an input layer nor the head.
  bool hidden = true;
  // True if this rank counts it in sums over the whole model: exactly one of the ranks in a replica
  // that own the same elements does.
  bool counts = true;
  // Set if `tensor` is offloaded to CPU memory while its gradient arrives on the device: all
  // readers but the updater call wait() first (lib/units/host_update.h). Null: not offloaded.
  std::shared_ptr<HostUpdate> on_host = {};

  // Shape of the full parameter, and the number of its dimensions.
  std::vector<std::int64_t> shape() const { return shard ? shard->shape : tensor.sizes().vec(); }
  std::int64_t dimensions() const { return std::ssize(shape()); }

  // Describes the parameter's own tensor, or a tensor of state with the same elements; an undefined
  // tensor: their slices alone.
  Shard state() const { return state(tensor.detach()); }
  Shard state(at::Tensor elements) const {
    Shard result = shard ? *shard : full_shard(tensor);
    result.tensor = std::move(elements);
    result.owned = counts;
    return result;
  }
};

}  // namespace scaletrain::units
