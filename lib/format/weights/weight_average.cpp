#include "lib/format/weights/weight_average.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>

#include "lib/core/error.h"
#include "lib/core/printable.h"
#include "lib/format/safetensors/safetensors_header.h"
#include "lib/format/weights/element_values.h"

namespace scaletrain::format {
namespace {

constexpr const char* kOneModel = "average checkpoints of one model";

// Every set has the tensors of the first, and no other.
void check_alike(const WeightSet& first, const WeightSet& other) {
  for (const WeightTensor& tensor : first.tensors()) {
    const WeightTensor* const same = other.find(tensor.name);
    const std::string place = other.files().files.front().string();
    const std::string name = core::printable(tensor.name);
    if (same == nullptr) {
      throw core::CheckpointError(place, fmt::format("has no tensor \"{}\"", name), kOneModel);
    }
    if (same->dtype != tensor.dtype || same->shape != tensor.shape) {
      throw core::CheckpointError(
          place,
          fmt::format("has \"{}\" as {} [{}], where the first has {} [{}]", name, same->dtype,
                      fmt::join(same->shape, ","), tensor.dtype, fmt::join(tensor.shape, ",")),
          kOneModel);
    }
  }
  for (const WeightTensor& tensor : other.tensors()) {
    if (first.find(tensor.name) != nullptr) continue;
    throw core::CheckpointError(
        tensor.file.string(),
        fmt::format("has the tensor \"{}\", which the first has not", core::printable(tensor.name)),
        kOneModel);
  }
}

// Averages the bytes of a floating-point tensor over all sets into `bytes`, which are the first
// set's.
void average_bytes(const std::vector<const WeightSet*>& sets, const WeightTensor& tensor,
                   std::vector<std::byte>& bytes) {
  const auto count = static_cast<std::size_t>(tensor.bytes / dtype_bytes(tensor.dtype));
  std::vector<double> sums(count), values(count);
  std::vector<std::byte> buffer(bytes.size());
  read_values(tensor.dtype, bytes, sums);
  for (std::size_t i = 1; i < sets.size(); ++i) {
    sets[i]->read(*sets[i]->find(tensor.name), buffer);
    read_values(tensor.dtype, buffer, values);
    for (std::size_t k = 0; k < count; ++k) sums[k] += values[k];
  }
  for (double& sum : sums) sum /= static_cast<double>(sets.size());
  write_values(tensor.dtype, sums, bytes);
}

}  // namespace

std::vector<OwnedTensor> average_weights(const std::vector<const WeightSet*>& sets) {
  const WeightSet& first = *sets.at(0);
  for (const WeightSet* const set : sets) check_alike(first, *set);
  std::vector<OwnedTensor> averaged;
  averaged.reserve(first.tensors().size());
  for (const WeightTensor& tensor : first.tensors()) {
    OwnedTensor& mean = averaged.emplace_back(read_tensor(first, tensor));
    if (is_floating(tensor.dtype)) average_bytes(sets, tensor, mean.bytes);
  }
  return averaged;
}

}  // namespace scaletrain::format
