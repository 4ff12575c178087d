// One decoded image.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace scaletrain::data {

inline constexpr std::int64_t kChannels = 3;

struct Image {
  std::int64_t width = 0, height = 0;
  std::vector<std::uint8_t> pixels;  // [height, width, 3] row-major RGB

  // Sets the size; pixels are undefined afterwards. The memory is reused for the next image.
  void reshape(std::int64_t new_width, std::int64_t new_height) {
    width = new_width;
    height = new_height;
    pixels.resize(static_cast<std::size_t>(width * height * kChannels));
  }
  std::uint8_t* row(std::int64_t y) { return pixels.data() + y * width * kChannels; }
  const std::uint8_t* row(std::int64_t y) const { return pixels.data() + y * width * kChannels; }
};

// View of the pixels of an image that other code owns.
struct ImageView {
  std::int64_t width = 0, height = 0;
  const std::uint8_t* pixels = nullptr;  // as in Image

  ImageView() = default;
  ImageView(std::int64_t image_width, std::int64_t image_height, const std::uint8_t* image_pixels)
      : width(image_width), height(image_height), pixels(image_pixels) {}
  ImageView(const Image& image)  // NOLINT(google-explicit-constructor): an Image converts to a view
      : ImageView(image.width, image.height, image.pixels.data()) {}
  const std::uint8_t* row(std::int64_t y) const { return pixels + y * width * kChannels; }
};

}  // namespace scaletrain::data
