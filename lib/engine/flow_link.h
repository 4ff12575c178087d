// Sends the tensors between pipeline stages: activations forward and gradients back.
//
// The first flow of a kind is preceded by its description: number of tensors, and for each its
// dtype, shape, strides and if it needs a gradient. Later flows of the kind have none.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "lib/dist/pipe_links.h"
#include "lib/units/unit.h"

namespace scaletrain::engine {

struct FlowTensor {
  at::ScalarType type = at::kFloat;
  std::vector<std::int64_t> sizes, strides;  // without gaps in memory
  bool wants_gradient = false;
};
using FlowShape = std::vector<FlowTensor>;

class FlowLink {
 public:
  explicit FlowLink(dist::PipeLink link) : link_(std::move(link)) {}

  // `kind` identifies flows with equal descriptions and must be equal at both ends. Returns the
  // description that the flow was sent with.
  const FlowShape& send(const std::string& kind, const units::Flow& flow);
  // Receives a flow as leaf tensors, some of which require gradients.
  units::Flow receive(const std::string& kind);
  dist::PipeLink& link() { return link_; }

 private:
  dist::PipeLink link_;
  std::map<std::string, FlowShape> shapes_;
};

// Sends the gradients of those tensors of `flow`, received by a FlowLink, that require them.
void send_gradients(dist::PipeLink& link, const units::Flow& flow);
// Receives gradients for a flow that was sent as `shape`: of its tensors that require them, in
// order.
units::Flow receive_gradients(dist::PipeLink& link, const FlowShape& shape);

}  // namespace scaletrain::engine
