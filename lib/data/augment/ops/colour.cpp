#include "lib/data/augment/ops/colour.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "lib/data/augment/ops/blend.h"
#include "lib/data/image/clones.h"
#include "lib/data/image/luma.h"

namespace scaletrain::data {
namespace {

SCALETRAIN_CLONES void luma_row(const std::uint8_t* in, std::uint8_t* out, std::int64_t pixels) {
  for (std::int64_t i = 0; i < pixels; ++i) out[i] = luma(in + i * kChannels);
}

SCALETRAIN_CLONES std::int64_t sum_of(const std::uint8_t* values, std::int64_t count) {
  constexpr std::int64_t kBlock = 1 << 16;  // pixels whose sum fits in 24 bits
  std::int64_t sum = 0;
  for (std::int64_t begin = 0; begin < count; begin += kBlock) {
    std::uint32_t part = 0;
    for (std::int64_t i = begin; i < std::min(begin + kBlock, count); ++i) part += values[i];
    sum += part;
  }
  return sum;
}

// The module is compiled with -ffp-contract=off, so that all clones round alike.
SCALETRAIN_CLONES void blend_with_grey(const std::uint8_t* grey, float alpha, std::uint8_t* pixels,
                                       std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    for (std::int64_t c = 0; c < kChannels; ++c) {
      pixels[i * kChannels + c] = blend(grey[i], pixels[i * kChannels + c], alpha);
    }
  }
}

std::int64_t pixel_count(const Image& image) { return image.width * image.height; }

// Hue, saturation and value, 0..255 each.
struct Hsv {
  std::uint8_t hue, saturation, value;
};

// Pillow's rgb2hsv_row.
Hsv to_hsv(const std::uint8_t* pixel) {
  const int red = pixel[0], green = pixel[1], blue = pixel[2];
  const int most = std::max({red, green, blue}), least = std::min({red, green, blue});
  const auto value = static_cast<std::uint8_t>(most);
  if (most == least) return {0, 0, value};
  const auto range = static_cast<float>(most - least);
  const float r = static_cast<float>(most - red) / range;
  const float g = static_cast<float>(most - green) / range;
  const float b = static_cast<float>(most - blue) / range;
  float hue = 0;
  if (red == most) {
    hue = b - g;
  } else if (green == most) {
    hue = static_cast<float>(2.0 + r - b);
  } else {
    hue = static_cast<float>(4.0 + g - r);
  }
  hue = static_cast<float>(std::fmod(hue / 6.0 + 1.0, 1.0));
  const float saturation = range / static_cast<float>(most);
  const auto to_byte = [](float x) {
    return static_cast<std::uint8_t>(std::clamp(static_cast<int>(x * 255.0), 0, 255));
  };
  return {to_byte(hue), to_byte(saturation), value};
}

// Pillow's hsv2rgb.
void from_hsv(const Hsv& hsv, std::uint8_t* pixel) {
  if (hsv.saturation == 0) {
    std::fill_n(pixel, kChannels, hsv.value);
    return;
  }
  const double sixth = static_cast<float>(hsv.hue) * 6.0 / 255.0;
  const int sector = static_cast<int>(sixth);
  const auto rest = static_cast<float>(sixth - sector);
  const auto saturation = static_cast<float>(hsv.saturation / 255.0);
  const auto part = [&](double share) {
    return static_cast<std::uint8_t>(
        std::clamp(static_cast<int>(std::round(static_cast<float>(hsv.value) * share)), 0, 255));
  };
  const std::uint8_t v = hsv.value;
  const std::uint8_t p = part(1.0 - saturation);
  const std::uint8_t q = part(1.0 - saturation * rest);
  const std::uint8_t t = part(1.0 - saturation * (1.0 - rest));
  const std::uint8_t colours[6][3] = {{v, t, p}, {q, v, p}, {p, v, t},  // NOLINT
                                      {p, q, v}, {t, p, v}, {v, p, q}};
  std::copy_n(&colours[sector % 6][0], kChannels, pixel);
}

// 3 x 3 mean with the centre counted five times, for a row between two others, without its first
// and last pixel. (2 s + 13) / 26 is s / 13 rounded.
SCALETRAIN_CLONES void sharpen_row(const std::uint8_t* above, const std::uint8_t* in,
                                   const std::uint8_t* below, float alpha, std::uint8_t* out,
                                   std::int64_t row_bytes) {
  for (std::int64_t i = kChannels; i < row_bytes - kChannels; ++i) {
    const auto sum =
        static_cast<std::uint16_t>(above[i - 3] + above[i] + above[i + 3] + in[i - 3] + 5 * in[i] +
                                   in[i + 3] + below[i - 3] + below[i] + below[i + 3]);
    const auto twice = static_cast<std::uint16_t>(2 * sum + 13);  // 16-bit division is fastest
    const auto smooth = static_cast<std::uint8_t>(twice / 26);
    out[i] = blend(smooth, in[i], alpha);
  }
}

}  // namespace

std::uint8_t mean_luma(const Image& image, Scratch& scratch) {
  const std::int64_t count = pixel_count(image);
  scratch.bytes.resize(static_cast<std::size_t>(count));
  luma_row(image.pixels.data(), scratch.bytes.data(), count);
  const std::int64_t sum = sum_of(scratch.bytes.data(), count);
  return static_cast<std::uint8_t>(
      std::floor(static_cast<double>(sum) / static_cast<double>(count) + 0.5));
}

void to_grey(Image& image) {
  std::uint8_t* const end = image.pixels.data() + image.pixels.size();
  for (std::uint8_t* pixel = image.pixels.data(); pixel != end; pixel += kChannels) {
    std::fill_n(pixel, kChannels, luma(pixel));
  }
}

void change_saturation(double factor, Image& image, Scratch& scratch) {
  const std::int64_t count = pixel_count(image);
  scratch.bytes.resize(static_cast<std::size_t>(count));
  luma_row(image.pixels.data(), scratch.bytes.data(), count);
  blend_with_grey(scratch.bytes.data(), static_cast<float>(factor), image.pixels.data(), count);
}

void turn_hue(double turns, Image& image) {
  const auto shift = static_cast<std::uint8_t>(static_cast<int>(turns * 255));
  std::uint8_t* const end = image.pixels.data() + image.pixels.size();
  for (std::uint8_t* pixel = image.pixels.data(); pixel != end; pixel += kChannels) {
    Hsv hsv = to_hsv(pixel);
    hsv.hue = static_cast<std::uint8_t>(hsv.hue + shift);
    from_hsv(hsv, pixel);
  }
}

void change_sharpness(double factor, Image& image, Scratch& scratch) {
  if (image.width < 3 || image.height < 3) return;  // every pixel is at the edge
  Image& out = scratch.image;
  out.reshape(image.width, image.height);
  const std::int64_t row_bytes = image.width * kChannels;
  const auto copy = [&](std::int64_t y, std::int64_t begin, std::int64_t bytes) {
    std::copy_n(image.row(y) + begin, bytes, out.row(y) + begin);
  };
  copy(0, 0, row_bytes);
  copy(image.height - 1, 0, row_bytes);
  const auto alpha = static_cast<float>(factor);
  for (std::int64_t y = 1; y + 1 < image.height; ++y) {
    copy(y, 0, kChannels);
    copy(y, row_bytes - kChannels, kChannels);
    sharpen_row(image.row(y - 1), image.row(y), image.row(y + 1), alpha, out.row(y), row_bytes);
  }
  std::swap(image, out);
}

}  // namespace scaletrain::data
