// WebP decoding with libwebp.
#include <webp/decode.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>

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

// Decodes a still picture.
void decode_still(std::string_view file, std::int64_t most_pixels, Image& image) {
  const auto* const data = reinterpret_cast<const std::uint8_t*>(file.data());
  WebPDecoderConfig config;
  if (WebPInitDecoderConfig(&config) == 0) throw std::runtime_error("another libwebp");
  check(WebPGetFeatures(data, file.size(), &config.input));
  if (config.input.has_animation != 0) throw std::invalid_argument("an animation in a frame");
  check_pixels(config.input.width, config.input.height, most_pixels);
  image.reshape(config.input.width, config.input.height);
  config.output.colorspace = MODE_RGB;
  config.output.is_external_memory = 1;
  config.output.u.RGBA.rgba = image.pixels.data();
  config.output.u.RGBA.stride = static_cast<int>(image.width * kChannels);
  config.output.u.RGBA.size = image.pixels.size();
  check(WebPDecode(data, file.size(), &config));
}

// Reads a little-endian number.
std::size_t number_at(std::string_view file, std::size_t place, std::size_t bytes) {
  if (place + bytes > file.size()) throw std::invalid_argument("the file is truncated");
  std::size_t number = 0;
  for (std::size_t i = bytes; i > 0; --i) {
    number = number << 8U | static_cast<std::uint8_t>(file[place + i - 1]);
  }
  return number;
}

// First frame of an animation (RFC 9649, section 2.7.1.1): the position of its upper left corner,
// and its picture, which has the chunks of a file.
struct Frame {
  std::size_t left = 0, top = 0;
  std::string_view picture;
};

Frame first_frame(std::string_view file) {
  constexpr std::size_t kChunkHeader = 8, kFirstChunk = 12, kFrameHeader = 16;
  for (std::size_t place = kFirstChunk; place + kChunkHeader <= file.size();) {
    const std::size_t bytes = number_at(file, place + 4, 4);
    const std::size_t begin = place + kChunkHeader;
    if (bytes > file.size() - begin) throw std::invalid_argument("the file is truncated");
    if (file.substr(place, 4) == "ANMF" && bytes > kFrameHeader) {
      return {2 * number_at(file, begin, 3), 2 * number_at(file, begin + 3, 3),
              file.substr(begin + kFrameHeader, bytes - kFrameHeader)};
    }
    place = begin + bytes + bytes % 2;
  }
  throw std::invalid_argument("an animation without a frame");
}

// Returns the picture of a frame as a WebP file without its alpha.
std::string as_file(std::string_view picture) {
  if (picture.starts_with("ALPH")) {
    const std::size_t bytes = number_at(picture, 4, 4);
    picture.remove_prefix(std::min(picture.size(), 8 + bytes + bytes % 2));
  }
  std::string file = "RIFF....WEBP";
  for (std::size_t i = 0; i < 4; ++i) {
    file[4 + i] = static_cast<char>((picture.size() + 4) >> (8 * i));
  }
  file += picture;
  return file;
}

// Decodes as Pillow does: the area outside the first frame is black.
void decode_animated(std::string_view file, const WebPBitstreamFeatures& features,
                     std::int64_t most_pixels, Image& image) {
  check_pixels(features.width, features.height, most_pixels);
  const Frame frame = first_frame(file);
  Image part;
  decode_still(as_file(frame.picture), most_pixels, part);
  const auto left = static_cast<std::int64_t>(frame.left);
  const auto top = static_cast<std::int64_t>(frame.top);
  if (left + part.width > features.width || top + part.height > features.height) {
    throw std::invalid_argument("a frame outside of the picture");
  }
  image.reshape(features.width, features.height);
  std::fill(image.pixels.begin(), image.pixels.end(), std::uint8_t{0});
  for (std::int64_t y = 0; y < part.height; ++y) {
    std::copy(part.row(y), part.row(y) + part.width * kChannels,
              image.row(top + y) + left * kChannels);
  }
}

}  // namespace

void decode_webp(std::string_view file, Image& image, std::int64_t most_pixels) {
  WebPBitstreamFeatures features;
  check(
      WebPGetFeatures(reinterpret_cast<const std::uint8_t*>(file.data()), file.size(), &features));
  if (features.has_animation != 0) {
    decode_animated(file, features, most_pixels, image);
  } else {
    decode_still(file, most_pixels, image);
  }
}

}  // namespace scaletrain::data
