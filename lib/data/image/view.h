// Crop and size of a picture, chosen from the picture's size before it is decoded, so that only the
// crop needs decoding.
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

enum class Filter { kBilinear, kBicubic };  // Pillow's, anti-aliased

// `source` of the picture is resized to width x height, of which `window` is kept.
struct View {
  Box source;
  std::int64_t width = 0, height = 0;
  Box window;
  Filter filter = Filter::kBilinear;

  bool operator==(const View&) const = default;
};

using ViewOf = std::function<View(std::int64_t width, std::int64_t height)>;

// A whole picture of width x height, resized to new_width x new_height.
View stretched(std::int64_t width, std::int64_t height, std::int64_t new_width,
               std::int64_t new_height, Filter filter = Filter::kBilinear);

// `source` resized to size x size.
View resized(const Box& source, std::int64_t size, Filter filter = Filter::kBilinear);

// A picture of width x height as evaluation sees it: the shorter side becomes `shorter`, then the
// centre of size x size (torchvision's Resize and CenterCrop). `size` is at most `shorter`.
View fitted(std::int64_t width, std::int64_t height, std::int64_t shorter, std::int64_t size,
            Filter filter = Filter::kBilinear);

}  // namespace scaletrain::data
