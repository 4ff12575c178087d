// A parameter, or the piece of one that a rank owns, as optimizers and checkpoints take it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/format/piece.h"

namespace scaletrain::units {

class HostUpdate;

struct NamedParameter {
  std::string name;   // of the logical tensor: the model's
  at::Tensor tensor;  // its .grad() holds the gradient
  // The logical tensor's shape, and the element of it, counted row by row, where `tensor` begins;
  // without a shape `tensor` is all of it, as it is.
  std::vector<std::int64_t> shape = {};
  std::int64_t begin = 0;
  // Where its elements lie in the logical tensor, one piece behind the other, where they do not
  // follow each other row by row from `begin` on.
  std::vector<format::Piece> pieces = {};
  // Whether the model wants weight decay on it.
  bool decays = true;
  // Whether it belongs to the layer that gives a number for each class.
  bool is_head = false;
  // Its learning rate over the optimizer's.
  double lr_scale = 1;
  // Its own, in place of the optimizer's and of all rules about who has none.
  std::optional<double> weight_decay = {};
  // Whether it belongs to a hidden layer: to neither what takes the input nor the head.
  bool hidden = true;
  // Whether this rank counts it in sums over the whole model: one of the ranks of a replica that
  // own the same elements does.
  bool counts = true;
  // Where `tensor` lies in the host's memory for good, and its gradient comes on the device: who
  // reads it, other than who updates it, waits here (lib/units/host_update.h). Null: it does not.
  std::shared_ptr<HostUpdate> on_host = {};

  // Dimensions of the logical tensor.
  std::int64_t dimensions() const {
    return shape.empty() ? tensor.dim() : static_cast<std::int64_t>(shape.size());
  }
};

}  // namespace scaletrain::units
