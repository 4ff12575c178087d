#include "lib/train/rules/saturation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

namespace scaletrain::train {
namespace {

constexpr double kSame = 1e-6, kVanished = 1e-3, kFitted = 0.1;
constexpr std::int64_t kFewestSteps = 20, kShareOfRun = 100;

void push_newest(std::deque<double>& values, double value, std::size_t most) {
  values.push_back(value);
  if (values.size() > most) values.pop_front();
}

bool are_equal(const std::deque<double>& values) {
  const auto [low, high] = std::ranges::minmax(values);
  return high - low <= kSame * std::max(std::abs(low), std::abs(high));
}

double typical(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

std::string Saturation::step(std::int64_t step, double loss, double grad_norm) {
  if (steps_ == 0 || !std::isfinite(loss) || !std::isfinite(grad_norm)) return "";
  const auto most = static_cast<std::size_t>(steps_);
  push_newest(losses_, loss, most);
  push_newest(norms_, grad_norm, most);
  if (norms_.size() < most) return "";
  if (first_norm_ < 0) first_loss_ = typical({losses_.begin(), losses_.end()});
  if (first_norm_ < 0) first_norm_ = typical({norms_.begin(), norms_.end()});
  const auto warns = [&](bool holds, bool& has_warned) {
    return holds && !std::exchange(has_warned, true);
  };
  if (warns(are_equal(losses_), has_loss_)) {
    return fmt::format(
        "warning: the loss has not changed in {} steps up to step {}: it is {:g}; look at the "
        "learning rate, frozen parameters and the targets",
        steps_, step, loss);
  }
  const double largest = *std::ranges::max_element(norms_);
  const bool is_fitted = loss < kFitted * first_loss_;
  if (warns(!is_fitted && largest <= kVanished * first_norm_, has_vanished_)) {
    return fmt::format(
        "warning: the gradients have vanished in {} steps up to step {}: their norm is {:g}, and "
        "was {:g} at the beginning; look for saturated or dead units",
        steps_, step, grad_norm, first_norm_);
  }
  if (warns(are_equal(norms_), has_norm_)) {
    return fmt::format(
        "warning: the gradient norm has not changed in {} steps up to step {}: it is {:g}; look "
        "for saturated units and repeated batches",
        steps_, step, grad_norm);
  }
  return "";
}

std::int64_t saturation_steps(std::int64_t asked, std::int64_t total_steps) {
  return asked > 0 ? asked : std::max(kFewestSteps, total_steps / kShareOfRun);
}

}  // namespace scaletrain::train
