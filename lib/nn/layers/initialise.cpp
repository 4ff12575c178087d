#include "lib/nn/layers/initialise.h"

#include <ATen/ATen.h>

#include <cmath>
#include <utility>

namespace scaletrain::nn {

void initialise_by_inputs(const at::Tensor& parameter, std::int64_t inputs,
                          at::Generator generator) {
  const double bound = 1 / std::sqrt(static_cast<double>(inputs));
  parameter.uniform_(-bound, bound, std::move(generator));
}

void initialise_by_outputs(const at::Tensor& weight, at::Generator generator) {
  const std::int64_t fan = weight.size(0) * weight.size(2) * weight.size(3);
  weight.normal_(0, std::sqrt(2 / static_cast<double>(fan)), std::move(generator));
}

}  // namespace scaletrain::nn
