// PNG, JPEG and rgb8 files to 8-bit RGB.
//
// Grey and CMYK become RGB, alpha is left out, 16 bits are scaled to 8. Which of them a file is
// its first bytes say, since extensions are often wrong. Anything damaged, a warning of libjpeg
// too, is a failure: a grey half must not be trained on.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "lib/data/image.h"

namespace scaletrain::data {

inline constexpr std::int64_t kMaxPixels = 100'000'000;  // 300 MB decoded

// Decoders with their working memory, for one thread.
class Decoder {
 public:
  Decoder();
  ~Decoder();

  // Decodes `file` into `image`. Throws std::invalid_argument saying what is wrong with the file.
  void decode(std::string_view file, Image& image);

 private:
  class Jpeg;
  std::unique_ptr<Jpeg> jpeg_;
};

// The PNG half; same errors.
void decode_png(std::string_view file, Image& image);

// Throws std::invalid_argument for an image of more than kMaxPixels.
void check_pixels(std::int64_t width, std::int64_t height);

}  // namespace scaletrain::data
