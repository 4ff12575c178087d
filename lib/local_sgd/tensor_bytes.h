// Conversions between tensors and the bytes of a message.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <cstddef>
#include <vector>

namespace scaletrain::local_sgd {

// Copies to the CPU, which waits for the device.
inline at::Tensor on_host(const at::Tensor& weights) { return weights.cpu(); }

// `flat`: on the CPU.
inline std::vector<std::byte> as_bytes(const at::Tensor& flat) {
  const at::Tensor whole = flat.contiguous();
  const auto* const begin = static_cast<const std::byte*>(whole.const_data_ptr());
  return {begin, begin + whole.nbytes()};
}

// View of `bytes`, which must outlive it.
inline at::Tensor as_values(const std::vector<std::byte>& bytes, at::ScalarType type) {
  if (bytes.empty()) return at::empty({0}, at::TensorOptions(type));
  // from_blob takes no const pointer.
  auto* const begin = const_cast<std::byte*>(bytes.data());
  return at::from_blob(begin, {static_cast<std::int64_t>(bytes.size() / c10::elementSize(type))},
                       at::TensorOptions(type));
}

inline at::Tensor as_floats(const std::vector<std::byte>& bytes) {
  return as_values(bytes, at::kFloat);
}

// Copies the bytes into a new tensor of the shape and dtype of `like`, on the CPU; undefined if
// their number differs.
inline at::Tensor as_tensor_like(const std::vector<std::byte>& bytes, const at::Tensor& like) {
  if (bytes.size() != like.nbytes()) return {};
  return as_values(bytes, like.scalar_type()).reshape(like.sizes()).clone();
}

}  // namespace scaletrain::local_sgd
