// Decoder for the common kind of PNG, 8 bits a value and not interlaced, two to three times as fast
// as libpng: libdeflate inflates the data at once, and only the needed rows are unfiltered.
//
// Other kinds and damaged files are left to libpng.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "lib/data/image/image.h"
#include "lib/data/image/pixel_limit.h"

struct libdeflate_decompressor;

namespace scaletrain::data {

struct PngSize {
  std::int64_t width = 0, height = 0;
};
PngSize png_size(std::string_view file);  // 0 x 0 for an invalid header

// Decoder with its working memory, for one thread.
class PlainPng {
 public:
  PlainPng();
  ~PlainPng();

  // Decodes the first `rows` rows of the PNG `file` as RGB; checks all chunks and checksums first.
  // Returns false, with undefined pixels, if the file must be decoded by libpng.
  bool decode(std::string_view file, std::int64_t rows, Image& image,
              std::int64_t most_pixels = kMaxPixels);

 private:
  struct Header;
  bool collect(std::string_view file, Header& header);

  std::unique_ptr<libdeflate_decompressor, void (*)(libdeflate_decompressor*)> inflater_;
  std::vector<std::uint8_t> packed_, filtered_, row_;
};

}  // namespace scaletrain::data
