#include "lib/data/loader/image_sizes.h"

#include <algorithm>
#include <cmath>

namespace scaletrain::data {
namespace {

std::int64_t steps_in(const recipe::Duration& duration, std::int64_t steps_per_epoch) {
  const bool has_epochs = duration.unit == recipe::Duration::Unit::kEpochs;
  const double unit = has_epochs ? static_cast<double>(steps_per_epoch) : 1;
  return std::llround(duration.value * unit);
}

}  // namespace

std::int64_t ImageSizes::at(std::int64_t step) const {
  const std::int64_t since = step - start;
  if (since >= over) return to;
  if (since <= 0) return from;
  const double way = static_cast<double>(since) / static_cast<double>(over);
  const double exact = static_cast<double>(from) + static_cast<double>(to - from) * way;
  const auto times = std::nearbyint(exact / static_cast<double>(multiple_of));
  return std::clamp(static_cast<std::int64_t>(times) * multiple_of, from, to);
}

ImageSizes plan_image_sizes(std::int64_t image_size, const std::optional<recipe::ResizeRamp>& ramp,
                            std::int64_t steps_per_epoch) {
  if (!ramp) return {.from = image_size, .to = image_size};
  return {.from = ramp->from,
          .to = image_size,
          .multiple_of = ramp->multiple_of,
          .start = steps_in(ramp->start, steps_per_epoch),
          .over = std::max<std::int64_t>(1, steps_in(ramp->over, steps_per_epoch))};
}

}  // namespace scaletrain::data
