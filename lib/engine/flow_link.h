// Flows on their way from one stage of a pipeline to the next, and their gradients back.
//
// The first flow of a kind goes with its description: how many tensors, of which types, shapes and
// strides, and which of them gradients are wanted of. Those that follow go without.
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
  std::vector<std::int64_t> sizes, strides;  // dense
  bool wants_gradient = false;
};
using FlowShape = std::vector<FlowTensor>;

class FlowLink {
 public:
  explicit FlowLink(dist::PipeLink link) : link_(std::move(link)) {}

  // `kind` is the same text at both ends for flows that are described alike; returns how it
  // travels.
  const FlowShape& send(const std::string& kind, const units::Flow& flow);
  // Leaves, of which some require gradients.
  units::Flow receive(const std::string& kind);
  dist::PipeLink& link() { return link_; }

 private:
  dist::PipeLink link_;
  std::map<std::string, FlowShape> shapes_;
};

// The gradients of those tensors of `flow`, which a FlowLink has received, that require them.
void send_gradients(dist::PipeLink& link, const units::Flow& flow);
// Those of a flow that it has sent as `shape`: of the tensors that require them, in their order.
units::Flow receive_gradients(dist::PipeLink& link, const FlowShape& shape);

}  // namespace scaletrain::engine
