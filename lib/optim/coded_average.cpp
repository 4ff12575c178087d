#include "lib/optim/coded_average.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <utility>

#include "lib/core/cpu.h"
#include "lib/units/parallel.h"

namespace scaletrain::optim {

void for_each_block(const TensorStep& one,
                    const std::function<void(const BlockStep&, std::int64_t at)>& body) {
  constexpr std::int64_t kGrain = 64;  // blocks that are worth a thread
  const std::int64_t front = one.begin % kCodeBlock, count = one.parameter.numel();
  auto* const parameter = one.parameter.mutable_data_ptr<float>();
  const auto* const gradient = one.gradient.const_data_ptr<float>();
  const std::int64_t blocks = (front + count + kCodeBlock - 1) / kCodeBlock;
  units::parallel_for(0, blocks, kGrain, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t block = first; block < last; ++block) {
      const std::int64_t at = std::max<std::int64_t>(block * kCodeBlock - front, 0);
      const std::int64_t end = std::min((block + 1) * kCodeBlock - front, count);
      body({end - at, parameter + at, gradient + at}, at);
    }
  });
}

CodedAverage::CodedAverage(std::string kind, std::size_t place, bool has_signs,
                           std::int64_t min_size, at::Device device)
    : kind_(std::move(kind)), place_(place), min_size_(min_size), codes_(has_signs, device) {}

void CodedAverage::add_states(const NamedParameter& parameter,
                              std::vector<TensorState>& states) const {
  const at::Tensor tensor = parameter.tensor.detach();
  if (!is_coded(tensor)) {
    states.push_back({.kind = kind_, .tensor = at::zeros(tensor.sizes(), tensor.options())});
    return;
  }
  Coded coded = codes_.zeros(tensor, parameter.begin);
  states.push_back({.kind = kind_ + "_codes", .tensor = std::move(coded.codes)});
  states.push_back(
      {.kind = kind_ + "_scales", .tensor = std::move(coded.scales), .is_whole = true});
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

bool CodedAverage::has_blocks(const TensorStep& one) const {
  const auto is_plain = [](const at::Tensor& tensor) {
    return tensor.is_cpu() && tensor.scalar_type() == at::kFloat && tensor.is_contiguous();
  };
  return core::has_avx2() && is_coded(one.parameter) && is_plain(one.parameter) &&
         is_plain(one.gradient);
}

CodedBlocks CodedAverage::blocks(const TensorStep& one) const {
  return {.codes = one.states[2 * place_].mutable_data_ptr<std::uint8_t>(),
          .scales = one.states[2 * place_ + 1].mutable_data_ptr<float>(),
          .front = one.begin % kCodeBlock};
}

}  // namespace scaletrain::optim
