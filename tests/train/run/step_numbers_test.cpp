#include "lib/train/run/step_numbers.h"

#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <doctest/doctest.h>

#include <vector>

namespace {

using namespace scaletrain;
using Values = std::vector<double>;

Values values_of(std::span<const double> field) { return {field.begin(), field.end()}; }

train::StepNumbers<std::span<const double>> packed_and_unpacked(
    const train::StepNumbers<at::Tensor>& numbers, at::Tensor& vector) {
  vector = train::pack(numbers);
  const auto size = static_cast<std::size_t>(vector.numel());
  return train::unpack({vector.const_data_ptr<double>(), size}, train::sizes_of(numbers));
}

TEST_CASE("each field of a step's numbers returns under its own name") {
  const train::StepNumbers<at::Tensor> numbers{.votes = at::tensor(Values{1, 2, 3}, at::kDouble),
                                               .grad_norm = at::full({}, 4.5, at::kFloat),
                                               .statistics = at::tensor(Values{5, 6}, at::kDouble),
                                               .loss_scale = at::full({}, 1024, at::kFloat),
                                               .spikes = at::full({}, 3, at::kDouble)};
  at::Tensor vector;
  const auto fields = packed_and_unpacked(numbers, vector);
  CHECK((vector.scalar_type() == at::kDouble));
  CHECK(values_of(fields.votes) == Values{1, 2, 3});
  CHECK(values_of(fields.grad_norm) == Values{4.5});
  CHECK(values_of(fields.statistics) == Values{5, 6});
  CHECK(values_of(fields.loss_scale) == Values{1024});
  CHECK(values_of(fields.spikes) == Values{3});
}

TEST_CASE("a model without statistics and a run without loss scaling have empty fields") {
  const train::StepNumbers<at::Tensor> numbers{.votes = at::tensor(Values{7}, at::kDouble),
                                               .grad_norm = at::full({}, 8.0, at::kDouble)};
  at::Tensor vector;
  const auto fields = packed_and_unpacked(numbers, vector);
  CHECK(vector.numel() == 2);
  CHECK(values_of(fields.votes) == Values{7});
  CHECK(values_of(fields.grad_norm) == Values{8});
  CHECK(fields.statistics.empty());
  CHECK(fields.loss_scale.empty());
}

}  // namespace
