// EXIF orientation of a picture (CIPA DC-008, Exif 2.32, tag 0x0112): in a JPEG's APP1 segment, a
// PNG's eXIf chunk (PNG, third edition, section 11.3.3.2) or a WebP's EXIF chunk (RFC 9649).
#pragma once

#include <string_view>

#include "lib/data/image/image.h"

namespace scaletrain::data {

// Returns the orientation, 1..8, in `segment`, which begins with "Exif"; 0 if it has none or is not
// EXIF.
int exif_orientation(std::string_view segment);

// Returns the EXIF orientation of a file; 0 if its chunks are damaged, which the decoder reports.
int png_orientation(std::string_view file);
int webp_orientation(std::string_view file);

// Rotates or mirrors the stored `image` upright; `spare` is working memory. Orientation 1 changes
// nothing.
void apply_orientation(int orientation, Image& image, Image& spare);

}  // namespace scaletrain::data
