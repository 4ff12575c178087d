// The orientation that a camera notes in a JPEG's APP1 segment (CIPA DC-008, Exif 2.32, tag
// 0x0112).
#pragma once

#include <string_view>

#include "lib/data/image/image.h"

namespace scaletrain::data {

// 1..8, or 0 where `segment` (from "Exif" on) says none or is no EXIF.
int exif_orientation(std::string_view segment);

// Turns `image`, as stored, upright; `spare` is working memory. 1 changes nothing.
void apply_orientation(int orientation, Image& image, Image& spare);

}  // namespace scaletrain::data
