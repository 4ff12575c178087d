#include "lib/train/rules/cadence.h"

#include <cmath>

namespace scaletrain::train {
namespace {

constexpr double kSecondsPerMinute = 60;

// True if (before, now] contains an integer multiple of `period`.
bool crossed(double before, double now, double period) {
  return std::floor(now / period) > std::floor(before / period);
}

bool crossed_by(std::int64_t before, std::int64_t now, double period) {
  return crossed(static_cast<double>(before), static_cast<double>(now), period);
}

}  // namespace

bool Cadence::due(std::int64_t step, double seconds_before, double seconds) const {
  switch (every_.unit) {
    case recipe::Duration::Unit::kSteps:
      return crossed_by(step - 1, step, every_.value);
    case recipe::Duration::Unit::kEpochs:
      return crossed_by(length_.place(step - 1), length_.place(step),
                        every_.value * static_cast<double>(length_.steps_per_epoch));
    case recipe::Duration::Unit::kMinutes:
      return crossed(seconds_before, seconds, every_.value * kSecondsPerMinute);
  }
  return false;
}

}  // namespace scaletrain::train
