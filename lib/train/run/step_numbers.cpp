#include "lib/train/run/step_numbers.h"

#include <ATen/ops/cat.h>

#include <array>
#include <cstddef>
#include <vector>

namespace scaletrain::train {

at::Tensor pack(const StepNumbers<at::Tensor>& numbers) {
  std::vector<at::Tensor> fields;
  StepNumbers<at::Tensor>::for_each(numbers, [&](const at::Tensor& field) {
    if (field.defined()) fields.push_back(field.to(at::kDouble).view({-1}));
  });
  return at::cat(fields);
}

StepNumbers<std::int64_t> sizes_of(const StepNumbers<at::Tensor>& numbers) {
  const auto size = [](const at::Tensor& field) { return field.defined() ? field.numel() : 0; };
  return {.votes = size(numbers.votes),
          .grad_norm = size(numbers.grad_norm),
          .statistics = size(numbers.statistics),
          .loss_scale = size(numbers.loss_scale),
          .spikes = size(numbers.spikes)};
}

StepNumbers<std::span<const double>> unpack(std::span<const double> values,
                                            const StepNumbers<std::int64_t>& sizes) {
  std::vector<std::size_t> counts;
  StepNumbers<std::int64_t>::for_each(
      sizes, [&](std::int64_t size) { counts.push_back(static_cast<std::size_t>(size)); });
  StepNumbers<std::span<const double>> numbers;
  auto count = counts.begin();
  StepNumbers<std::span<const double>>::for_each(numbers, [&](std::span<const double>& field) {
    field = values.first(*count);
    values = values.subspan(*count++);
  });
  return numbers;
}

}  // namespace scaletrain::train
