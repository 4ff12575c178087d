#include "tests/parity/tensor_files.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <span>
#include <utility>
#include <vector>

#include "lib/core/disk/disk.h"
#include "lib/core/error.h"
#include "lib/format/safetensors/safetensors.h"

namespace scaletrain::parity {
namespace {

at::ScalarType type_of(const std::string& dtype) {
  if (dtype == "I64") return at::kLong;
  if (dtype == "F64") return at::kDouble;
  if (dtype == "F32") return at::kFloat;
  throw core::InternalError("parity", fmt::format("a tensor of type {}", dtype));
}

const char* type_name(const at::Tensor& tensor) {
  if (tensor.scalar_type() == at::kLong) return "I64";
  return tensor.scalar_type() == at::kDouble ? "F64" : "F32";
}

std::span<std::byte> bytes_of(const at::Tensor& tensor) {
  return {static_cast<std::byte*>(tensor.mutable_data_ptr()), tensor.nbytes()};
}

}  // namespace

Tensors read_tensors(const std::string& path) {
  Tensors result;
  const format::SafetensorsFile file(path);
  for (const format::TensorInfo& info : file.tensors()) {
    const at::Tensor tensor = at::empty(info.shape, type_of(info.dtype));
    file.read(info, bytes_of(tensor));
    result.emplace(info.name, tensor);
  }
  return result;
}

void write_tensors(const std::string& path, Tensors tensors) {
  std::vector<format::TensorBytes> list;
  for (auto& [name, tensor] : tensors) {
    tensor = tensor.detach().contiguous();
    list.push_back({name, type_name(tensor), tensor.sizes().vec(), bytes_of(tensor)});
  }
  format::write_safetensors(core::system_disk(), path, std::move(list), {});
}

}  // namespace scaletrain::parity
