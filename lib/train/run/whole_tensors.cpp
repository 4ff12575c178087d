#include "lib/train/run/whole_tensors.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <string>

namespace scaletrain::train {
namespace {

// The part that a tensor of this name and shape is, null where it is whole.
const units::TensorPart* find_part(const units::TensorParts& parts, const std::string& name,
                                   const at::Tensor& own) {
  const std::size_t kind = name.find('/');
  const auto found = parts.find(kind == std::string::npos ? name : name.substr(kind + 1));
  if (found == parts.end() || own.sizes() != found->second.part_shape()) return nullptr;
  return &found->second;
}

}  // namespace

// As a sum: each rank adds its part to zeros, and parts may differ in size. Sums bytes, since 0 +
// -0 has other bits than -0.
NamedTensors gather_wholes(dist::Group& tensors, const units::TensorParts& parts,
                           const NamedTensors& own) {
  const at::NoGradGuard no_grad;
  NamedTensors result;
  for (const auto& [name, tensor] : own) {
    const units::TensorPart* const part = find_part(parts, name, tensor);
    if (part == nullptr) {
      result.emplace(name, tensor);
      continue;
    }
    const at::Tensor whole =
        at::zeros(part->shape, tensor.options().device(tensors.device()).requires_grad(false));
    part->put_into(whole, tensor.detach());
    tensors.all_reduce_sum(whole.view(at::kByte), "whole tensors").wait();
    result.emplace(name, whole.to(tensor.device()));
  }
  return result;
}

NamedTensors blank_wholes(const units::TensorParts& parts, const NamedTensors& own) {
  NamedTensors result;
  for (const auto& [name, tensor] : own) {
    const units::TensorPart* const part = find_part(parts, name, tensor);
    result.emplace(name, part == nullptr
                             ? tensor
                             : at::empty(part->shape, tensor.options().requires_grad(false)));
  }
  return result;
}

std::int64_t bytes_of_wholes(const units::TensorParts& parts, const NamedTensors& own) {
  std::int64_t bytes = 0;
  for (const auto& [name, tensor] : own) {
    const units::TensorPart* const part = find_part(parts, name, tensor);
    const std::int64_t elements =
        part == nullptr ? tensor.numel() : format::element_count(part->shape);
    bytes += elements * static_cast<std::int64_t>(tensor.itemsize());
  }
  return bytes;
}

void take_parts(const units::TensorParts& parts, const NamedTensors& whole,
                const NamedTensors& own) {
  const at::NoGradGuard no_grad;
  for (const auto& [name, tensor] : own) {
    const units::TensorPart* const part = find_part(parts, name, tensor);
    if (part != nullptr) tensor.detach().copy_(part->of(whole.at(name)));
  }
}

}  // namespace scaletrain::train
