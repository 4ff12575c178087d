// One axis of a resize: which source pixels make up each pixel of the result, and with what
// weights.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/data/image/view.h"

namespace scaletrain::data {

class ResizeAxis {
 public:
  static constexpr int kPrecision = 22;  // bits of a weight behind the point

  struct Plan {
    double begin = 0, size = 0;  // the source, from pixel `first` on
    std::int64_t first = 0;      // pixels of the image that belong to it
    std::int64_t count = 0;
    std::int64_t full = 0;  // pixels that the source is resized to
    Range window;           // computed part of these pixels
    Filter filter = Filter::kBilinear;

    bool operator==(const Plan&) const = default;
  };
  // `range` of the picture, which was shrunk by a whole number when it was decoded.
  static Plan plan(Range range, std::int64_t shrink, std::int64_t full, Range window,
                   Filter filter);

  // Returns whether anything changed since the plan before.
  bool prepare(const Plan& plan);

  struct Taps {
    std::int64_t first = 0, count = 0;  // pixels of the image
    const std::int32_t* weights = nullptr;
  };
  Taps at(std::int64_t index) const;  // weights of pixel window.begin + index
  Range needed() const;               // pixels of the image that the window reads
  std::int64_t size() const { return plan_.window.size; }
  std::int64_t most_taps() const { return most_taps_; }

 private:
  Plan plan_;
  std::vector<std::int64_t> first_, count_;
  std::vector<std::int32_t> weights_;
  std::vector<double> exact_;  // weights of one pixel
  std::int64_t stride_ = 0, most_taps_ = 0;
};

}  // namespace scaletrain::data
