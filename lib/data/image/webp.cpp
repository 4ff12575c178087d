// WebP through libwebp.
#include <webp/decode.h>

#include <stdexcept>

#include "lib/data/image/decode.h"
#include "lib/data/image/pixel_limit.h"

namespace scaletrain::data {
namespace {

void check(VP8StatusCode status) {
  switch (status) {
    case VP8_STATUS_OK:
      return;
    case VP8_STATUS_OUT_OF_MEMORY:
      throw std::bad_alloc();
    case VP8_STATUS_NOT_ENOUGH_DATA:
    case VP8_STATUS_SUSPENDED:
      throw std::invalid_argument("the file is truncated");
    case VP8_STATUS_UNSUPPORTED_FEATURE:
      throw std::invalid_argument("a kind of WebP that libwebp does not read");
    default:
      throw std::invalid_argument("the WebP data is damaged");
  }
}

}  // namespace

void decode_webp(std::string_view file, Image& image) {
  const auto* const data = reinterpret_cast<const std::uint8_t*>(file.data());
  WebPDecoderConfig config;
  if (WebPInitDecoderConfig(&config) == 0) throw std::runtime_error("another libwebp");
  check(WebPGetFeatures(data, file.size(), &config.input));
  if (config.input.has_animation != 0) throw std::invalid_argument("an animated WebP");
  check_pixels(config.input.width, config.input.height);
  image.reshape(config.input.width, config.input.height);
  config.output.colorspace = MODE_RGB;
  config.output.is_external_memory = 1;
  config.output.u.RGBA.rgba = image.pixels.data();
  config.output.u.RGBA.stride = static_cast<int>(image.width * kChannels);
  config.output.u.RGBA.size = image.pixels.size();
  check(WebPDecode(data, file.size(), &config));
}

}  // namespace scaletrain::data
