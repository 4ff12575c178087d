// Draws pictures of coloured shapes with visible classes: data for trials.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/data/image/image.h"

namespace scaletrain::app {

// Returns the names of `count` classes: "red-circle", ..., from the 73rd on "red-circle-x2" with
// two shapes.
std::vector<std::string> shape_classes(std::int64_t count);

// Returns label number `i` of the order in which neighbours differ in shape and colour:
// "red-circle", "green-square", "blue-triangle", ... The order is a permutation of each 72 labels.
std::int64_t distinct_label(std::int64_t i);

// Draws picture `number` of class `label`: the shape at a random place, size and angle on a noisy
// background. Depends on seed, number, label and the size of `image` only.
void draw_shapes(std::uint64_t seed, std::int64_t number, std::int64_t label, data::Image& image);

}  // namespace scaletrain::app
