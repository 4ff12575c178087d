#include "lib/input/images.h"

#include <ATen/ops/from_blob.h>

#include "lib/data/loader/image_batch.h"

namespace scaletrain::input {

namespace {

// View of the batch's memory.
at::Tensor labels_in(const data::Batch& batch) {
  const data::Column& column = batch.columns.layout()[data::kLabels];
  if (column.element == data::Element::kInt64) {
    return at::from_blob(data::labels_of(batch).data(), {batch.count}, at::kLong);
  }
  return at::from_blob(data::class_flags_of(batch).data(), {batch.count, column.size}, at::kByte);
}

at::Tensor targets_of(const at::Tensor& labels) {
  return labels.scalar_type() == at::kByte ? labels.to(at::kFloat) : labels;
}

}  // namespace

at::ScalarType image_type(const recipe::Precision& precision) {
  return precision.name == "fp64" ? at::kDouble : at::kFloat;
}

ImageInput::ImageInput(const recipe::Normalize& normalize, std::int64_t channels, at::Device device,
                       at::ScalarType type)
    : device_(device), normalize_on_cpu_(normalize, channels, type), transfer_(device) {
  if (!device_.is_cpu()) normalize_on_device_.emplace(normalize, channels, device_, type);
}

ImageTensors ImageInput::prepare(const data::Batch& batch) const {
  const at::Tensor labels = labels_in(batch);
  const std::int64_t size = data::image_size_of(batch);
  const at::Tensor bytes =
      at::from_blob(data::pixels_of(batch).data(), {batch.count, size, size, kChannels}, at::kByte);
  if (device_.is_cpu())
    return {.images = normalize_on_cpu_(bytes), .targets = targets_of(labels.clone())};
  const std::vector<at::Tensor> copies = transfer_({bytes, labels}, batch.columns.block());
  return {.images = (*normalize_on_device_)(copies[0]), .targets = targets_of(copies[1])};
}

}  // namespace scaletrain::input
