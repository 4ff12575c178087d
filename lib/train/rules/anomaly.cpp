#include "lib/train/rules/anomaly.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace scaletrain::train {
namespace {

// Number of anomalous steps in the window that ends with `step`.
std::int64_t count_in_window(const recipe::Anomaly& anomaly, const format::TrainState& state,
                             std::int64_t step) {
  return std::ranges::count_if(state.anomaly_steps, [&](std::int64_t one) {
    return one > step - anomaly.window && one <= step;
  });
}

}  // namespace

void count_step(const recipe::Anomaly& anomaly, const CountedStep& one, format::TrainState& state) {
  if (std::isfinite(one.loss) && std::isfinite(one.grad_norm)) {
    state.anomaly_window.push_back({one.step, one.loss, one.grad_norm});
    // One more than the window: the newest does not count for the next step.
    const auto most = static_cast<std::size_t>(anomaly.window) + 1;
    if (state.anomaly_window.size() > most) {
      state.anomaly_window.erase(state.anomaly_window.begin());
    }
  }
  if (!one.anomalous) return;
  ++state.anomalies;
  state.anomaly_steps.push_back(one.step);
  std::erase_if(state.anomaly_steps,
                [&](std::int64_t step) { return step <= one.step - anomaly.window; });
}

SpikeBounds next_bounds(const recipe::Anomaly& anomaly, const format::TrainState& state) {
  return spike_bounds(state.anomaly_window, state.step + 1, anomaly.window, anomaly.spike);
}

std::string anomaly_end(const recipe::Anomaly& anomaly, const format::TrainState& state,
                        std::int64_t step) {
  if (anomaly.policy == "stop") return "the step is anomalous, and /anomaly/policy is stop";
  const std::int64_t count = count_in_window(anomaly, state, step);
  if (count <= anomaly.max) return "";
  return fmt::format("{} of the last {} steps were anomalous, more than /anomaly/max", count,
                     anomaly.window);
}

double reduced_lr(const std::optional<recipe::Anomaly>& anomaly, const format::TrainState& state,
                  double lr) {
  if (!anomaly || anomaly->policy != "reduce_lr") return lr;
  const std::int64_t later = std::ranges::count_if(
      state.anomaly_steps, [&](std::int64_t step) { return step >= state.step; });
  return lr * std::pow(anomaly->factor, static_cast<double>(state.anomalies - later));
}

format::TrainState rolled_back(const format::TrainState& now, const format::TrainState& then) {
  format::TrainState result = now;
  result.anomaly_window = then.anomaly_window;
  result.ema_updates = then.ema_updates;
  result.swa_updates = then.swa_updates;
  result.scaler = then.scaler;
  // Ranges ascend: those after the checkpoint are part of the new one.
  std::erase_if(result.skipped_ranges, [&](const auto& range) { return range[0] > then.step; });
  result.skipped_ranges.push_back({then.step + 1, now.step});
  result.skipped_steps = then.skipped_steps + static_cast<int>(now.step - then.step);
  return result;
}

void keep_anomalies_of(const std::optional<recipe::Anomaly>& anomaly, format::TrainState& state) {
  if (anomaly) return;
  state.anomaly_window.clear();
  state.anomaly_steps.clear();
  state.anomalies = 0;
}

}  // namespace scaletrain::train
