#include "lib/data/augment/ops/affine.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <utility>

#include "lib/data/image/view.h"

namespace scaletrain::data {
namespace {

constexpr int kPlaceBits = 16;  // fraction bits of a fixed-point coordinate
constexpr std::int64_t kOne = 1 << kPlaceBits;

std::int64_t to_fixed(double value) {
  return static_cast<std::int64_t>(std::floor(value * kOne + 0.5));
}

// Returns the range of x in 0..width-1 with 0 <= start + x * step < limit, which needs no bounds
// check.
Range inside(std::int64_t start, std::int64_t step, std::int64_t limit, std::int64_t width) {
  if (step == 0) return {0, start >= 0 && start < limit ? width : 0};
  if (step < 0) {  // mirrors the range
    const Range mirrored = inside(start + step * (width - 1), -step, limit, width);
    return {width - mirrored.begin - mirrored.size, mirrored.size};
  }
  const auto first_from = [&](std::int64_t bound) {  // smallest x with start + x * step >= bound
    const std::int64_t distance = bound - start;
    return distance <= 0 ? 0 : std::min((distance + step - 1) / step, width);
  };
  const std::int64_t begin = first_from(0);
  return {begin, std::max<std::int64_t>(0, first_from(limit) - begin)};
}

Range intersection(Range one, Range other) {
  const std::int64_t begin = std::max(one.begin, other.begin);
  const std::int64_t end = std::min(one.begin + one.size, other.begin + other.size);
  return {begin, std::max<std::int64_t>(0, end - begin)};
}

struct Place {
  std::int64_t x, y;  // fixed point
};

// Copies four bytes for three; the next pixel overwrites the last one, except at the end of the
// image.
void nearest_run(const Image& image, Place place, Place step, std::int64_t count,
                 std::uint8_t* out) {
  const std::int64_t row_bytes = image.width * kChannels;
  const std::uint8_t* const pixels = image.pixels.data();
  const auto next_pixel = [&] {
    const std::uint8_t* const from =
        pixels + (place.y >> kPlaceBits) * row_bytes + (place.x >> kPlaceBits) * kChannels;
    place.x += step.x;
    place.y += step.y;
    return from;
  };
  const std::int64_t lowest = std::max(place.y, place.y + step.y * (count - 1)) >> kPlaceBits;
  const std::int64_t wide = lowest < image.height - 1 ? count - 1 : 0;
  for (std::int64_t i = 0; i < wide; ++i, out += kChannels) std::memcpy(out, next_pixel(), 4);
  for (std::int64_t i = wide; i < count; ++i, out += kChannels) {
    std::memcpy(out, next_pixel(), kChannels);
  }
}

// Copies a run for a map whose step along the row is one pixel to the right.
void straight_run(const Image& image, Place place, Place /*step*/, std::int64_t count,
                  std::uint8_t* out) {
  std::memcpy(out, image.row(place.y >> kPlaceBits) + (place.x >> kPlaceBits) * kChannels,
              static_cast<std::size_t>(count * kChannels));
}

void bilinear_run(const Image& image, Place place, Place step, std::int64_t count,
                  std::uint8_t* out) {
  const std::int64_t row_bytes = image.width * kChannels;
  for (std::int64_t i = 0; i < count; ++i, out += kChannels) {
    // Relative to pixel centres; at the edge a pixel is its own neighbour.
    const std::int64_t x = place.x - kOne / 2, y = place.y - kOne / 2;
    const std::int64_t column = x >> kPlaceBits, row = y >> kPlaceBits;
    const auto right = static_cast<std::int32_t>(x >> (kPlaceBits - 8) & 0xff);
    const auto down = static_cast<std::int32_t>(y >> (kPlaceBits - 8) & 0xff);
    const std::int64_t x0 = std::max<std::int64_t>(column, 0) * kChannels;
    const std::int64_t x1 = std::min(column + 1, image.width - 1) * kChannels;
    const std::uint8_t* const upper =
        image.pixels.data() + std::max<std::int64_t>(row, 0) * row_bytes;
    const std::uint8_t* const lower =
        image.pixels.data() + std::min(row + 1, image.height - 1) * row_bytes;
    for (std::int64_t c = 0; c < kChannels; ++c) {
      const std::int32_t above = upper[x0 + c] * (256 - right) + upper[x1 + c] * right;
      const std::int32_t below = lower[x0 + c] * (256 - right) + lower[x1 + c] * right;
      out[c] = static_cast<std::uint8_t>((above * (256 - down) + below * down) >> 16);
    }
    place.x += step.x;
    place.y += step.y;
  }
}

}  // namespace

void apply_affine(const Affine& affine, Sampling sampling, const Colour& fill, Image& image,
                  Scratch& scratch) {
  Image& out = scratch.image;
  out.reshape(image.width, image.height);
  const Place step{to_fixed(affine.a), to_fixed(affine.d)};
  const Place down{to_fixed(affine.b), to_fixed(affine.e)};
  Place start{to_fixed(affine.c + affine.a * 0.5 + affine.b * 0.5),
              to_fixed(affine.f + affine.d * 0.5 + affine.e * 0.5)};
  const auto copy_run = sampling == Sampling::kBilinear ? bilinear_run
                        : step.x == kOne && step.y == 0 ? straight_run
                                                        : nearest_run;
  for (std::int64_t y = 0; y < out.height; ++y) {
    const Range run = intersection(inside(start.x, step.x, image.width * kOne, out.width),
                                   inside(start.y, step.y, image.height * kOne, out.width));
    std::uint8_t* const row = out.row(y);
    for (std::int64_t x = 0; x < out.width; ++x) {
      if (x == run.begin) x += run.size;
      if (x < out.width) std::copy(fill.begin(), fill.end(), row + x * kChannels);
    }
    const Place first{start.x + run.begin * step.x, start.y + run.begin * step.y};
    if (run.size > 0) copy_run(image, first, step, run.size, row + run.begin * kChannels);
    start.x += down.x;
    start.y += down.y;
  }
  std::swap(image, out);
}

Affine rotation(double degrees, std::int64_t width, std::int64_t height) {
  const double angle = -degrees * std::numbers::pi / 180;
  const double x = static_cast<double>(width) / 2, y = static_cast<double>(height) / 2;
  Affine affine{std::cos(angle), std::sin(angle), 0, -std::sin(angle), std::cos(angle), 0};
  affine.c = x - affine.a * x - affine.b * y;
  affine.f = y - affine.d * x - affine.e * y;
  return affine;
}

}  // namespace scaletrain::data
