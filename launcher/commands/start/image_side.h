// Reads the size of an image from the header of its file, without decoding it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace scaletrain::launcher {

// Returns the shorter side in pixels of a JPEG, PNG or .rgb8 file that begins with `head`; nullopt
// for other formats and for headers that are cut off.
std::optional<std::int64_t> shorter_side(std::string_view head);

}  // namespace scaletrain::launcher
