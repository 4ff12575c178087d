#include "app/data/files/image_kind.h"

#include <fmt/format.h>

#include <stdexcept>

#include "app/foreign/foreign_image.h"
#include "lib/core/error.h"
#include "lib/data/image/encode.h"
#include "lib/format/rgb8.h"

namespace scaletrain::app {

std::string image_kind(std::string_view file) {
  if (file.starts_with("\xff\xd8\xff")) return "jpg";
  if (file.starts_with("\x89PNG\r\n\x1a\n")) return "png";
  if (file.starts_with("RIFF") && file.substr(0, 12).ends_with("WEBP")) return "webp";
  if (file.starts_with(format::kRgb8Magic)) return "rgb8";
  return "";
}

std::string take_image(std::string& file, const std::string& place) {
  if (foreign_kind(file).empty()) return image_kind(file);
  data::Image image;
  try {
    decode_foreign(file, image);
  } catch (const std::invalid_argument& error) {
    throw core::DataError(place, fmt::format("the image is damaged: {}", error.what()),
                          "leave it out, or write it again as PNG");
  }
  file = data::to_png(image);
  return "png";
}

bool extension_fits(std::string_view extension, std::string_view file) {
  return image_kind(file) == (extension == "jpeg" ? "jpg" : extension);
}

}  // namespace scaletrain::app
