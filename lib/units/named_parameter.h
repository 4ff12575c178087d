// A parameter, or the local shard of one, as optimizers and checkpoints use it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/format/checkpoint/piece.h"

namespace scaletrain::units {

class HostUpdate;

struct NamedParameter {
  std::string name;   // name of the full parameter in the model
  at::Tensor tensor;  // its .grad() holds the gradient
  // Shape of the full parameter, and the row-major index of its element where `tensor` begins;
  // without a shape `tensor` is the full parameter.
  std::vector<std::int64_t> shape = {};
  std::int64_t begin = 0;
  // Positions of the shard's elements in the full parameter, as consecutive pieces, if they are not
  // contiguous from `begin` on.
  std::vector<format::Piece> pieces = {};
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

  // Number of dimensions of the full parameter.
  std::int64_t dimensions() const {
    return shape.empty() ? tensor.dim() : static_cast<std::int64_t>(shape.size());
  }
};

}  // namespace scaletrain::units
