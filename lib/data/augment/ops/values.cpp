#include "lib/data/augment/ops/values.h"

#include <algorithm>
#include <cmath>

#include "lib/data/augment/ops/blend.h"
#include "lib/data/image/clones.h"

namespace scaletrain::data {
namespace {

// The module is compiled with -ffp-contract=off, so that all clones round alike.
SCALETRAIN_CLONES void blend_all(std::uint8_t base, float alpha, std::uint8_t* values,
                                 std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) values[i] = blend(base, values[i], alpha);
}

// Inverts values above `last`.
SCALETRAIN_CLONES void invert_above(std::uint8_t last, std::uint8_t* values, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint8_t value = values[i];
    values[i] = value > last ? static_cast<std::uint8_t>(~value) : value;
  }
}

SCALETRAIN_CLONES void raise_below(std::uint8_t threshold, std::uint8_t amount,
                                   std::uint8_t* values, std::size_t count) {
  const auto most = static_cast<std::uint8_t>(255 - amount);  // largest value without overflow
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint8_t value = values[i];
    const auto raised = static_cast<std::uint8_t>(std::min(value, most) + amount);
    values[i] = value < threshold ? raised : value;
  }
}

SCALETRAIN_CLONES void mask_all(std::uint8_t mask, std::uint8_t* values, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) values[i] &= mask;
}

SCALETRAIN_CLONES void invert_all(std::uint8_t* values, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<std::uint8_t>(~values[i]);
}

}  // namespace

void blend_values(double factor, std::uint8_t base, Image& image) {
  blend_all(base, static_cast<float>(factor), image.pixels.data(), image.pixels.size());
}

void solarize(double threshold, Image& image) {
  const int first = static_cast<int>(std::ceil(threshold));
  if (first <= 0) return invert(image);
  if (first > 255) return;
  invert_above(static_cast<std::uint8_t>(first - 1), image.pixels.data(), image.pixels.size());
}

void solarize_add(int amount, int threshold, Image& image) {
  raise_below(static_cast<std::uint8_t>(threshold), static_cast<std::uint8_t>(amount),
              image.pixels.data(), image.pixels.size());
}

void posterize(int bits, Image& image) {
  mask_all(static_cast<std::uint8_t>(0xff << (8 - bits)), image.pixels.data(), image.pixels.size());
}

void invert(Image& image) { invert_all(image.pixels.data(), image.pixels.size()); }

}  // namespace scaletrain::data
