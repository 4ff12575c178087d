// Warmup-stable-decay (WSD): constant at the peak, with a decay in the last part of training (Hu et
// al., MiniCPM, 2024, section 4), as in Hugging Face's get_wsd_schedule; "1-sqrt" is from Haegele
// et al., Scaling Laws and Compute-Optimal Training Beyond Fixed Training Durations, 2024.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include "lib/optim/decay.h"

namespace scaletrain::optim {
namespace {

// Decay factor of the cooldown, falling from 1 to 0.
double fall(const std::string& shape, double progress) {
  if (shape == "cosine") return (1 + std::cos(std::numbers::pi * progress)) / 2;
  return shape == "1-sqrt" ? 1 - std::sqrt(progress) : 1 - progress;
}

}  // namespace

Decay make_warmup_stable_decay(const recipe::Component& config, DecaySpan span) {
  const double last = config.number("final_factor");
  // The share is of all steps, the warmup too.
  const double all = static_cast<double>(span.steps + span.warmup_steps);
  const std::int64_t length =
      std::clamp<std::int64_t>(std::llround(config.number("decay_share") * all), 0, span.steps);
  const std::int64_t stable = span.steps - length;
  return [shape = config.text("shape"), last, length, stable](std::int64_t step) {
    if (step < stable) return 1.0;
    return last + (1 - last) * fall(shape, progress(step - stable, {.steps = length}));
  };
}

}  // namespace scaletrain::optim
