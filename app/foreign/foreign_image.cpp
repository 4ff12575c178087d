#include "app/foreign/foreign_image.h"

#include <stdexcept>

#include "lib/data/set/folder_files.h"

namespace scaletrain::app {

using namespace std::string_view_literals;  // NOLINT(google-build-using-namespace): for zero bytes

std::string foreign_kind(std::string_view file) {
  if (file.starts_with("BM")) return "bmp";
  if (file.starts_with("GIF87a") || file.starts_with("GIF89a")) return "gif";
  for (const std::string_view magic : {"II\x2a\0"sv, "MM\0\x2a"sv, "II\x2b\0"sv, "MM\0\x2b"sv}) {
    if (file.starts_with(magic)) return "tiff";
  }
  return "";
}

bool is_foreign_file(const std::string& name) {
  const std::string extension = data::file_extension(name);
  return extension == ".bmp" || extension == ".gif" || extension == ".tif" || extension == ".tiff";
}

void decode_foreign(std::string_view file, data::Image& image, std::int64_t most_pixels) {
  const std::string kind = foreign_kind(file);
  if (kind == "bmp") return decode_bmp(file, image, most_pixels);
  if (kind == "gif") return decode_gif(file, image, most_pixels);
  if (kind == "tiff") return decode_tiff(file, image, most_pixels);
  throw std::invalid_argument("its first bytes are not those of BMP, GIF or TIFF");
}

}  // namespace scaletrain::app
