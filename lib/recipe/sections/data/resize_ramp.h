// Progressive resizing: smaller images early in training.
#pragma once

#include <cstdint>
#include <optional>

#include "lib/recipe/catalog/values.h"
#include "lib/recipe/sections/model.h"
#include "lib/recipe/sections/section.h"

namespace scaletrain::recipe {

// Progressive image size: lib/data/loader/image_sizes.h.
struct ResizeRamp {
  std::int64_t from = 0;  // initial height and width
  Duration start{Duration::Unit::kEpochs, 0};
  Duration over{Duration::Unit::kEpochs, 1};
  std::int64_t multiple_of = 32;  // sizes are multiples of this
};

TypePtr describe(std::optional<ResizeRamp>& value);

// Checks that it grows to `image_size`, and that the model takes images of other sizes.
void check(const std::optional<ResizeRamp>& ramp, std::int64_t image_size, const Node& tree,
           Problems& problems);
void check(const std::optional<ResizeRamp>& ramp, const Model& model, const Node& tree,
           Problems& problems);

}  // namespace scaletrain::recipe
