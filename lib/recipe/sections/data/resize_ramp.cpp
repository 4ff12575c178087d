#include "lib/recipe/sections/data/resize_ramp.h"

#include <fmt/format.h>

#include "lib/recipe/catalog/duration.h"
#include "lib/recipe/schema/object.h"

namespace scaletrain::recipe {
namespace {

TypePtr length_of_data(Duration& value, bool may_be_zero) {
  return duration(value, {Duration::Unit::kSteps, Duration::Unit::kEpochs}, may_be_zero);
}

}  // namespace

TypePtr describe(std::optional<ResizeRamp>& value) {
  return optional(value, [](ResizeRamp& inner) {
    auto keys = std::make_unique<Object>();
    keys->require("from", integer(inner.from, from(8).to(4096)),
                  "Initial image height and width, in pixels. For example 160.")
        .add("start", length_of_data(inner.start, true),
             "Training at the initial size before it grows, in steps or epochs. Default: 0 epochs.")
        .require("over", length_of_data(inner.over, false),
                 "Training during which the size grows to image_size, in steps or epochs.")
        .add("multiple_of", integer(inner.multiple_of, from(1).to(4096)),
             "Rounds image sizes to the nearest multiple of this many pixels. Default: 32.");
    return keys;
  });
}

void check(const std::optional<ResizeRamp>& ramp, std::int64_t image_size, const Node& tree,
           Problems& problems) {
  if (!ramp || ramp->from < image_size) return;
  problems.add(
      written_at(tree, {"data", "resize_ramp", "from"}), "/data/resize_ramp/from",
      fmt::format("{} does not grow to \"image_size\", which is {}", ramp->from, image_size),
      "use less, or leave the ramp out");
}

void check(const std::optional<ResizeRamp>& ramp, const Model& model, const Node& tree,
           Problems& problems) {
  if (!ramp) return;
  if (model.row().has_rule(Rule::Kind::kFixedImageSize)) {
    problems.add(written_at(tree, {"data", "resize_ramp"}), "/data/resize_ramp",
                 fmt::format("{} has weights for images of one size", model.name),
                 "leave it out, or use a convolutional model such as resnet50");
    return;
  }
  check_image_size(model, {.size = ramp->from, .pointer = "/data/resize_ramp/from"}, tree,
                   problems);
}

}  // namespace scaletrain::recipe
