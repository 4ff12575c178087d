#include "lib/engine/flow_link.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>

#include <algorithm>
#include <utility>

#include "lib/core/error.h"

namespace scaletrain::engine {
namespace {

constexpr const char* kActivations = "activations";
constexpr const char* kShapes = "shapes of activations";
constexpr const char* kGradients = "gradients of activations";

// Describes a tensor; keeps its strides if they leave no gaps in memory.
FlowTensor description_of(const at::Tensor& tensor) {
  const bool is_dense = tensor.is_non_overlapping_and_dense();
  return {.type = tensor.scalar_type(),
          .sizes = tensor.sizes().vec(),
          .strides = (is_dense ? tensor : at::empty(tensor.sizes(), at::kByte)).strides().vec(),
          .wants_gradient = tensor.requires_grad()};
}

at::Tensor room_for(const FlowTensor& shape, at::Device device) {
  return at::empty_strided(shape.sizes, shape.strides,
                           at::TensorOptions(shape.type).device(device));
}

// Returns `tensor` in the described layout, a copy only if its layout differs.
at::Tensor laid_out(const at::Tensor& tensor, const FlowTensor& shape) {
  const at::Tensor plain = tensor.detach();
  const bool fits = plain.scalar_type() == shape.type && plain.strides() == shape.strides;
  return fits ? plain : room_for(shape, plain.device()).copy_(plain);
}

std::vector<std::int64_t> numbers_of(const FlowShape& shape) {
  std::vector<std::int64_t> numbers{static_cast<std::int64_t>(shape.size())};
  for (const FlowTensor& one : shape) {
    numbers.push_back(static_cast<std::int64_t>(one.type));
    numbers.push_back(one.wants_gradient ? 1 : 0);
    numbers.push_back(static_cast<std::int64_t>(one.sizes.size()));
    numbers.insert(numbers.end(), one.sizes.begin(), one.sizes.end());
    numbers.insert(numbers.end(), one.strides.begin(), one.strides.end());
  }
  return numbers;
}

FlowShape shape_of(const std::vector<std::int64_t>& numbers) {
  auto next = numbers.begin();
  FlowShape shape(static_cast<std::size_t>(*next++));
  for (FlowTensor& one : shape) {
    one.type = static_cast<at::ScalarType>(*next++);
    one.wants_gradient = *next++ != 0;
    const std::int64_t dimensions = *next++;
    one.sizes.assign(next, next + dimensions);
    next += dimensions;
    one.strides.assign(next, next + dimensions);
    next += dimensions;
  }
  return shape;
}

}  // namespace

const FlowShape& FlowLink::send(const std::string& kind, const units::Flow& flow) {
  auto known = shapes_.find(kind);
  if (known == shapes_.end()) {
    FlowShape shape;
    for (const at::Tensor& tensor : flow) shape.push_back(description_of(tensor));
    link_.send_numbers(numbers_of(shape), kShapes);
    known = shapes_.emplace(kind, std::move(shape)).first;
  }
  const FlowShape& shape = known->second;
  bool fits = shape.size() == flow.size();
  for (std::size_t i = 0; fits && i < flow.size(); ++i) {
    fits = flow[i].sizes() == shape[i].sizes && flow[i].requires_grad() == shape[i].wants_gradient;
  }
  if (!fits) throw core::InternalError("pipeline", "the shapes of activations have changed");
  for (std::size_t i = 0; i < flow.size(); ++i) {
    link_.send(laid_out(flow[i], shape[i]), kActivations);
  }
  return shape;
}

units::Flow FlowLink::receive(const std::string& kind) {
  auto known = shapes_.find(kind);
  if (known == shapes_.end()) {
    known = shapes_.emplace(kind, shape_of(link_.receive_numbers(kShapes))).first;
  }
  units::Flow flow;
  for (const FlowTensor& shape : known->second) {
    const at::Tensor tensor = room_for(shape, link_.device());
    link_.receive(tensor, kActivations);
    flow.push_back(tensor.requires_grad_(shape.wants_gradient));
  }
  return flow;
}

void send_gradients(dist::PipeLink& link, const units::Flow& flow) {
  for (const at::Tensor& tensor : flow) {
    if (!tensor.requires_grad()) continue;
    const FlowTensor shape = description_of(tensor);
    const at::Tensor gradient = tensor.grad();
    link.send(
        gradient.defined() ? laid_out(gradient, shape) : room_for(shape, tensor.device()).zero_(),
        kGradients);
  }
}

units::Flow receive_gradients(dist::PipeLink& link, const FlowShape& shape) {
  units::Flow result;
  for (const FlowTensor& one : shape) {
    if (!one.wants_gradient) continue;
    result.push_back(room_for(one, link.device()));
    link.receive(result.back(), kGradients);
  }
  return result;
}

}  // namespace scaletrain::engine
