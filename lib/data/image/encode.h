// Encodes 8-bit RGB images to files, for the data tools.
#pragma once

#include <string>

#include "lib/data/image/image.h"

namespace scaletrain::data {

// Encodes as baseline JPEG with 4:2:0 subsampling, `quality` 1 to 100 and optimised Huffman codes.
// A restart marker after every 64 pixels of a row of blocks allows decoding a part without the data
// above and beside it (lib/data/image/jpeg_huffman.h).
std::string to_jpeg(const Image& image, int quality);
std::string to_png(const Image& image);
std::string to_rgb8(const Image& image);  // docs/reference/formats/rgb8.md

// Target format of `--reencode`.
struct Encoding {
  enum class Kind { kJpeg, kPng, kRaw };
  Kind kind = Kind::kJpeg;
  int quality = 90;  // JPEG only

  std::string extension() const;
};

// Parses "jpeg", "jpeg:90", "png" or "raw". Throws core::UsageError naming `option`.
Encoding parse_encoding(const std::string& text, const std::string& option);

std::string encode(const Image& image, const Encoding& encoding);

}  // namespace scaletrain::data
