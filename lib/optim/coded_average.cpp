#include "lib/optim/coded_average.h"

#include <ATen/ops/zeros.h>

#include <utility>

namespace scaletrain::optim {

CodedAverage::CodedAverage(std::string kind, std::size_t place, bool has_signs,
                           std::int64_t min_size, at::Device device)
    : kind_(std::move(kind)), place_(place), min_size_(min_size), codes_(has_signs, device) {}

void CodedAverage::add_states(const NamedParameter& parameter,
                              std::vector<TensorState>& states) const {
  const at::Tensor tensor = parameter.tensor.detach();
  if (!is_coded(tensor)) {
    states.push_back({kind_, at::zeros(tensor.sizes(), tensor.options())});
    return;
  }
  Coded coded = codes_.zeros(tensor, parameter.begin);
  states.push_back({kind_ + "_codes", std::move(coded.codes)});
  states.push_back({kind_ + "_scales", std::move(coded.scales)});
}

at::Tensor CodedAverage::load(const TensorStep& one) const {
  if (!is_coded(one.parameter)) return one.states[place_].clone();
  return codes_.decode({.codes = one.states[2 * place_], .scales = one.states[2 * place_ + 1]},
                       one.begin);
}

void CodedAverage::store(const at::Tensor& values, const TensorStep& one) const {
  if (!is_coded(one.parameter)) {
    one.states[place_].copy_(values);
    return;
  }
  codes_.encode(values, {.codes = one.states[2 * place_], .scales = one.states[2 * place_ + 1]},
                one.begin);
}

}  // namespace scaletrain::optim
