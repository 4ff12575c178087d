// Crop and size of a picture, chosen from the picture's size before decoding, so that only the crop
// needs to be decoded.
#pragma once

#include <cstdint>
#include <functional>

namespace scaletrain::data {

// A range of pixels along one axis.
struct Range {
  std::int64_t begin = 0, size = 0;

  bool operator==(const Range&) const = default;
};

struct Box {
  Range x, y;

  bool operator==(const Box&) const = default;
};

enum class Filter { kBilinear, kBicubic };  // anti-aliased, as in Pillow

// `source` of the picture is resized to width x height; of the result, `window` is kept.
struct View {
  Box source;
  std::int64_t width = 0, height = 0;
  Box window;
  Filter filter = Filter::kBilinear;

  bool operator==(const View&) const = default;
};

using ViewOf = std::function<View(std::int64_t width, std::int64_t height)>;

// Returns the view of a whole picture of width x height, resized to new_width x new_height.
View stretched(std::int64_t width, std::int64_t height, std::int64_t new_width,
               std::int64_t new_height, Filter filter = Filter::kBilinear);

// Returns the view of `source` resized to size x size.
View resized(const Box& source, std::int64_t size, Filter filter = Filter::kBilinear);

// Returns the evaluation view of a picture of width x height: the shorter side is resized to
// `shorter`, then the centre of size x size is cropped (torchvision's Resize and CenterCrop).
// `size` is at most `shorter`.
View fitted(std::int64_t width, std::int64_t height, std::int64_t shorter, std::int64_t size,
            Filter filter = Filter::kBilinear);

}  // namespace scaletrain::data
