// Decodes images in formats that shards do not support: BMP, GIF and TIFF. Tools that write shards
// convert them to PNG or to the requested format.
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

// Decodes the image with its orientation applied: the first frame of a GIF, the first page of a
// TIFF. Drops alpha and scales 16 bits to 8. Throws std::invalid_argument with the problem. Memory
// is limited by `most_pixels`, whatever the file claims.
void decode_foreign(std::string_view file, data::Image& image,
                    std::int64_t most_pixels = data::kMaxPixels);

// Decoders of one format each; same errors.
void decode_bmp(std::string_view file, data::Image& image, std::int64_t most_pixels);
void decode_gif(std::string_view file, data::Image& image, std::int64_t most_pixels);
void decode_tiff(std::string_view file, data::Image& image, std::int64_t most_pixels);

}  // namespace scaletrain::app
