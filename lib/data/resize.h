// Anti-aliased bilinear resizing, bit for bit as Pillow's (and so torchvision's on PIL images): a
// triangle filter widened by the scale, horizontally and then vertically, in 22-bit fixed point.
//
// Only the part of the result that is asked for is computed, so a resize and a crop are one.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/data/image.h"

namespace scaletrain::data {

// A range of pixels along one axis.
struct Range {
  std::int64_t begin = 0, size = 0;

  bool operator==(const Range&) const = default;
};

struct Box {
  Range x, y;
};

// One axis of a resize: which source pixels make up each pixel of the result, and with what
// weights.
class ResizeAxis {
 public:
  // `source` of the image becomes `full` pixels, of which `window` is computed.
  void prepare(Range source, std::int64_t full, Range window);

  struct Taps {
    std::int64_t first = 0, count = 0;  // source pixels, relative to Range source
    const std::int32_t* weights = nullptr;
  };
  Taps at(std::int64_t index) const;  // of pixel window.begin + index
  Range needed() const;               // source pixels that the window reads
  std::int64_t size() const { return window_.size; }

 private:
  Range source_, window_;
  std::int64_t full_ = 0;
  std::vector<std::int64_t> first_, count_;
  std::vector<std::int32_t> weights_;
  std::int64_t stride_ = 0;
};

// Keeps its memory and the weights of the last shape; for one thread.
class Resizer {
 public:
  // The `window` of the picture that the region `source` of `image` gives at full_width x
  // full_height.
  void resize(const Image& image, const Box& source, std::int64_t full_width,
              std::int64_t full_height, const Box& window, Image& out);

  // The whole image as evaluation sees it: the shorter side becomes `size`, then the centre of
  // size x size (torchvision's Resize and CenterCrop).
  void fit(const Image& image, std::int64_t size, Image& out);

 private:
  ResizeAxis x_, y_;
  std::vector<std::uint8_t> rows_;  // after the horizontal pass
  std::vector<std::int32_t> sums_;  // of one row in the vertical pass
};

}  // namespace scaletrain::data
