// Which image format a file is in, by its first bytes.
#pragma once

#include <string>
#include <string_view>

namespace scaletrain::app {

// "jpg", "png", "webp" or "rgb8"; "" for anything else.
std::string image_kind(std::string_view file);

// The same of a file that is to be a member of a shard. A foreign one
// (app/foreign/foreign_image.h) becomes a PNG. Throws core::DataError naming `place` where that is
// damaged.
std::string take_image(std::string& file, const std::string& place);

// Whether a member's extension names the format that its bytes are in.
bool extension_fits(std::string_view extension, std::string_view file);

}  // namespace scaletrain::app
