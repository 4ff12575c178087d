// The orientation that a camera notes (CIPA DC-008, Exif 2.32, tag 0x0112): in a JPEG's APP1
// segment, a PNG's chunk eXIf (PNG, third edition, section 11.3.3.2) or a WebP's chunk EXIF (RFC
// 9649).
#pragma once

#include <string_view>

#include "lib/data/image/image.h"

namespace scaletrain::data {

// 1..8, or 0 where `segment` (from "Exif" on) says none or is no EXIF.
int exif_orientation(std::string_view segment);

// EXIF orientation of a whole file; 0 also if its chunks are damaged, which the decoder reports.
int png_orientation(std::string_view file);
int webp_orientation(std::string_view file);

// Rotates or mirrors the stored `image` upright; `spare` is working memory. Orientation 1 changes
// nothing.
void apply_orientation(int orientation, Image& image, Image& spare);

}  // namespace scaletrain::data
