// One axis of a resize: the source pixels of each pixel of the result, and their weights.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/data/image/view.h"

namespace scaletrain::data {

class ResizeAxis {
 public:
  static constexpr int kPrecision = 22;  // fraction bits of a weight

  struct Plan {
    double begin = 0, size = 0;  // source range, relative to pixel `first`
    std::int64_t first = 0;      // pixels of the image in the source range
    std::int64_t count = 0;
    std::int64_t full = 0;  // pixels of the resized source
    Range window;           // part of them that is computed
    Filter filter = Filter::kBilinear;

    bool operator==(const Plan&) const = default;
  };
  // Plans the resize of `range` of a picture that was shrunk by the factor `shrink` during
  // decoding.
  static Plan plan(Range range, std::int64_t shrink, std::int64_t full, Range window,
                   Filter filter);

  // Computes the weights; returns false if the plan is the same as the previous one.
  bool prepare(const Plan& plan);

  struct Taps {
    std::int64_t first = 0, count = 0;  // source pixels in the image
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
