// Which image format a file is in, by its first bytes.
#pragma once

#include <string>
#include <string_view>

namespace scaletrain::app {

// "jpg", "png", "webp" or "rgb8"; "" for anything else.
std::string image_kind(std::string_view file);

// Whether a member's extension names the format that its bytes are in.
bool extension_fits(std::string_view extension, std::string_view file);

}  // namespace scaletrain::app
