#include "app/data/image_kind.h"

#include "lib/format/rgb8.h"

namespace scaletrain::app {

std::string image_kind(std::string_view file) {
  if (file.starts_with("\xff\xd8\xff")) return "jpg";
  if (file.starts_with("\x89PNG\r\n\x1a\n")) return "png";
  if (file.starts_with("RIFF") && file.substr(0, 12).ends_with("WEBP")) return "webp";
  if (file.starts_with(format::kRgb8Magic)) return "rgb8";
  return "";
}

bool extension_fits(std::string_view extension, std::string_view file) {
  return image_kind(file) == (extension == "jpeg" ? "jpg" : extension);
}

}  // namespace scaletrain::app
