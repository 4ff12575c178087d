// Image size in training as a function of the step (progressive resizing).
#pragma once

#include <cstdint>
#include <optional>

#include "lib/recipe/sections/data/data.h"

namespace scaletrain::data {

// At step s, counted from the start of training, the size is from + (to - from) * (s - start) /
// over, limited to the range from..to and rounded to a multiple of `multiple_of`. FFCV's
// get_resolution (its ImageNet example) does the same once an epoch.
struct ImageSizes {
  std::int64_t from = 0, to = 0, multiple_of = 1;
  std::int64_t start = 0, over = 0;  // steps; over 0: always `to`

  std::int64_t at(std::int64_t step) const;
};

// Plans the sizes for a training set with `steps_per_epoch` steps an epoch.
ImageSizes plan_image_sizes(std::int64_t image_size, const std::optional<recipe::ResizeRamp>& ramp,
                            std::int64_t steps_per_epoch);

}  // namespace scaletrain::data
