// Pictures of formats that shards do not hold: BMP, GIF and TIFF. The tools that write shards make
// PNGs of them, or what they are asked for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "lib/data/image/image.h"
#include "lib/data/image/pixel_limit.h"

namespace scaletrain::app {

// "bmp", "gif" or "tiff" by the first bytes; "" for anything else.
std::string foreign_kind(std::string_view file);

// True for an extension .bmp, .gif, .tif or .tiff.
bool is_foreign_file(const std::string& name);

// Decodes the picture, upright: the first frame of a GIF, the first page of a TIFF. Alpha is left
// out, 16 bits are scaled to 8, as everywhere. Throws std::invalid_argument saying what is wrong
// with the file. Memory is bounded by what `most_pixels` take, whatever the file says.
void decode_foreign(std::string_view file, data::Image& image,
                    std::int64_t most_pixels = data::kMaxPixels);

// One format each; same errors.
void decode_bmp(std::string_view file, data::Image& image, std::int64_t most_pixels);
void decode_gif(std::string_view file, data::Image& image, std::int64_t most_pixels);
void decode_tiff(std::string_view file, data::Image& image, std::int64_t most_pixels);

}  // namespace scaletrain::app
