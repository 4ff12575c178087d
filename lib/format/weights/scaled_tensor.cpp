#include "lib/format/weights/scaled_tensor.h"

#include <cstring>
#include <utility>
#include <vector>

#include "lib/format/safetensors/safetensors_header.h"
#include "lib/format/weights/element_values.h"

namespace scaletrain::format {
namespace {

constexpr std::int64_t kFloatBytes = sizeof(float);

std::int64_t elements_of(const WeightTensor& tensor) {
  std::int64_t count = 1;
  for (const std::int64_t size : tensor.shape) count *= size;
  return count;
}

}  // namespace

std::string scale_name(const std::string& tensor) { return tensor + "_scale"; }

bool ScaledTensor::fits(const WeightTensor& values, const WeightTensor& scales) {
  if (values.dtype != "I8" || !is_floating(scales.dtype) ||
      values.shape.size() != scales.shape.size()) {
    return false;
  }
  int scaled = 0;  // dimensions
  for (std::size_t i = 0; i < values.shape.size(); ++i) {
    if (scales.shape[i] == 1) continue;
    if (scales.shape[i] != values.shape[i]) return false;
    ++scaled;
  }
  return scaled <= 1 && elements_of(scales) > 0;
}

ScaledTensor::ScaledTensor(WeightTensor values, WeightTensor scales)
    : values_(std::move(values)), scales_(std::move(scales)) {
  for (std::size_t i = 0; i < values_.shape.size(); ++i) {
    inner_ = scales_.shape[i] == 1 ? inner_ * values_.shape[i] : 1;
  }
}

WeightTensor ScaledTensor::described() const {
  WeightTensor tensor = values_;
  tensor.dtype = "F32";
  tensor.bytes = elements_of(values_) * kFloatBytes;
  return tensor;
}

void ScaledTensor::read(std::span<std::byte> out, std::int64_t offset, const Read& stored) const {
  std::vector<std::byte> bytes(out.size() / sizeof(float));
  const std::int64_t first = offset / kFloatBytes;
  stored(values_, bytes, first);
  std::vector<std::byte> scale_bytes(static_cast<std::size_t>(scales_.bytes));
  stored(scales_, scale_bytes, 0);
  std::vector<double> scales(static_cast<std::size_t>(elements_of(scales_)));
  read_values(scales_.dtype, scale_bytes, scales);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const std::int64_t group = (first + static_cast<std::int64_t>(i)) / inner_;
    const auto scale = static_cast<float>(scales[static_cast<std::size_t>(group) % scales.size()]);
    const float value = static_cast<float>(static_cast<std::int8_t>(bytes[i])) * scale;
    std::memcpy(out.data() + i * sizeof(float), &value, sizeof(float));
  }
}

}  // namespace scaletrain::format
