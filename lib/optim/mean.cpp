#include "lib/optim/mean.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_lerp.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/zeros.h>

#include <utility>

namespace scaletrain::optim {

Mean::Mean(MeanPlan plan, const units::Shards& model) : plan_(std::move(plan)), means_(model) {
  at::Device device = at::kCPU;
  for (auto& [name, mean] : means_) {
    if (!mean.is_here()) {
      mean.tensor.reset();
      continue;
    }
    const at::Tensor live = mean.tensor.detach();
    const bool widens =
        live.is_floating_point() && c10::elementSize(live.scalar_type()) < sizeof(float);
    mean.tensor = widens ? live.to(at::kFloat) : live.clone();
    device = live.device();
    if (!live.is_floating_point()) {
      copied_.emplace_back(live, mean.tensor);
      continue;
    }
    Moving& moving = moving_[device.type()];
    moving.model.push_back(live);
    moving.means.push_back(mean.tensor);
  }
  updates_ = at::zeros({}, at::TensorOptions(at::kDouble).device(device));
}

bool Mean::is_due(std::int64_t step) const {
  if (step + 1 <= plan_.start) return step + 1 == plan_.start;
  const auto place = [this](std::int64_t steps) {
    return plan_.place ? plan_.place(steps) : steps;
  };
  const std::int64_t start = place(plan_.start);
  return (place(step + 1) - start) / plan_.every > (place(step) - start) / plan_.every;
}

at::Tensor Mean::share() const {
  if (!plan_.decay) return (updates_ + 1).reciprocal_();
  if (plan_.warmup) return 1 - (1 - at::pow(updates_ + 1, -2.0 / 3)).clamp_max_(*plan_.decay);
  return at::full_like(updates_, 1 - *plan_.decay).masked_fill_(updates_.eq(0), 1);
}

void Mean::update(std::int64_t step, const at::Tensor& found_inf) {
  if (!is_due(step)) return;
  const at::NoGradGuard no_grad;
  const at::Tensor taken = 1 - found_inf.to(updates_.device(), at::kDouble);
  // A share of 1 takes the model's bits, one of 0 leaves the mean's.
  const at::Tensor weight = share() * taken;
  for (const auto& [device, moving] : moving_) {
    const at::Tensor& first = moving.means.front();
    std::vector<at::Tensor> values;
    values.reserve(moving.model.size());
    for (std::size_t i = 0; i < moving.model.size(); ++i) {
      values.push_back(moving.model[i].to(moving.means[i].scalar_type()));
    }
    const at::Tensor here = weight.to(first.device(), first.scalar_type());
    at::_foreach_lerp_(moving.means, values, std::vector<at::Tensor>(values.size(), here));
  }
  for (const auto& [live, copy] : copied_) copy.copy_(live);
  updates_.add_(taken);
}

void Mean::restore(std::int64_t updates) { updates_.fill_(static_cast<double>(updates)); }

}  // namespace scaletrain::optim
