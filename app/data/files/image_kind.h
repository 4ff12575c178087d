// Recognises the image format of a file by its first bytes.
#pragma once

#include <string>
#include <string_view>

namespace scaletrain::app {

// "jpg", "png", "webp" or "rgb8"; "" for anything else.
std::string image_kind(std::string_view file);

// Like the above for a file that becomes a member of a shard. A BMP, GIF or TIFF
// (app/foreign/foreign_image.h) is converted to PNG. Throws core::DataError naming `place` if that
// file is damaged.
std::string take_image(std::string& file, const std::string& place);

// True if a member's extension matches the format of its bytes.
bool extension_fits(std::string_view extension, std::string_view file);

}  // namespace scaletrain::app
