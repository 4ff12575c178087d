#include "lib/format/weights/weight_cast.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "lib/core/error.h"
#include "lib/core/printable.h"
#include "lib/format/safetensors/safetensors_header.h"
#include "lib/format/weights/element_values.h"
#include "lib/format/weights/scaled_tensor.h"

namespace scaletrain::format {
namespace {

constexpr double kMostValue = 127;

std::vector<double> values_of(const OwnedTensor& tensor) {
  std::vector<double> values(tensor.bytes.size() /
                             static_cast<std::size_t>(dtype_bytes(tensor.dtype)));
  read_values(tensor.dtype, tensor.bytes, values);
  return values;
}

}  // namespace

OwnedTensor cast_tensor(OwnedTensor tensor, std::string_view dtype) {
  if (!is_floating(tensor.dtype) || tensor.dtype == dtype) return tensor;
  const std::vector<double> values = values_of(tensor);
  std::vector<double> rounded(values.size());
  tensor.dtype = dtype;
  tensor.bytes.resize(values.size() * static_cast<std::size_t>(dtype_bytes(dtype)));
  write_values(dtype, values, tensor.bytes);
  read_values(dtype, tensor.bytes, rounded);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isfinite(rounded[i]) || !std::isfinite(values[i])) continue;
    throw core::CheckpointError(
        core::printable(tensor.name),
        fmt::format("has the value {:.4g}, which is outside the range of {}", values[i], dtype),
        "use fp32 or bf16");
  }
  return tensor;
}

bool is_quantised(const OwnedTensor& tensor) {
  return is_floating(tensor.dtype) && tensor.shape.size() >= 2 && tensor.name.ends_with(".weight");
}

QuantisedTensor quantise_tensor(const OwnedTensor& tensor, std::size_t dim) {
  const std::vector<double> weights = values_of(tensor);
  const auto outputs = static_cast<std::size_t>(tensor.shape.at(dim));
  std::size_t inner = 1;  // elements between one index of `dim` and the next
  for (std::size_t i = dim + 1; i < tensor.shape.size(); ++i) {
    inner *= static_cast<std::size_t>(tensor.shape[i]);
  }
  std::vector<double> largest(outputs);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    double& most = largest[i / inner % outputs];
    most = std::max(most, std::abs(weights[i]));
  }
  std::vector<float> scales(outputs);
  for (std::size_t i = 0; i < outputs; ++i) scales[i] = static_cast<float>(largest[i] / kMostValue);

  QuantisedTensor result;
  result.values = {.name = tensor.name, .dtype = "I8", .shape = tensor.shape, .bytes = {}};
  result.values.bytes.resize(weights.size());
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const double scale = scales[i / inner % outputs];
    const double value = scale == 0 ? 0 : std::nearbyint(weights[i] / scale);
    result.values.bytes[i] = static_cast<std::byte>(
        static_cast<std::int8_t>(std::clamp(value, -kMostValue, kMostValue)));
  }
  std::vector<std::int64_t> shape(tensor.shape.size(), 1);
  shape[dim] = tensor.shape[dim];
  result.scales = {
      .name = scale_name(tensor.name), .dtype = "F32", .shape = std::move(shape), .bytes = {}};
  result.scales.bytes.resize(outputs * sizeof(float));
  std::memcpy(result.scales.bytes.data(), scales.data(), result.scales.bytes.size());
  return result;
}

}  // namespace scaletrain::format
