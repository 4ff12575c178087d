// PNG, JPEG, WebP and rgb8 (docs/reference/formats/rgb8.md) files to 8-bit RGB.
//
// Grey and CMYK become RGB, alpha is left out, 16 bits are scaled to 8. The format is recognised by
// the file's first bytes, since extensions are often wrong. Anything damaged, a warning of libjpeg
// too, is a failure: a grey half must not be trained on, unless DecodeOptions says so.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "lib/data/image/image.h"
#include "lib/data/image/jpeg.h"
#include "lib/data/image/pixel_limit.h"
#include "lib/data/image/plain_png.h"
#include "lib/data/image/resize.h"
#include "lib/data/image/view.h"

namespace scaletrain::data {

struct DecodeOptions {
  bool exif_orientation = false;         // pictures are turned as EXIF says
  bool lenient_jpeg = false;             // JPEG: decodes despite libjpeg's warnings
  std::int64_t max_pixels = kMaxPixels;  // limit of width * height
};

// Decoders with their working memory, for one thread. Everything throws std::invalid_argument
// saying what is wrong with the file.
class Decoder {
 public:
  explicit Decoder(DecodeOptions options = {}) : options_(options) {}

  // The whole picture.
  void decode(std::string_view file, Image& image);

  // The view that `view_of` chooses for the picture's size. A JPEG is decoded only where the view
  // needs it (damage outside may go unseen, a missing end does not), and where the view makes it at
  // least 2 * kReserve times smaller, it is decoded at 1/2, 1/4 or 1/8 of its size. Without
  // shrinking the result is that of decode() and Resizer::resize() to the last bit; with it, values
  // of a photograph differ by less than 1 on the mean and by 20 at most (tests/data/view_test.py).
  void decode_view(std::string_view file, const ViewOf& view_of, Image& out);

  // First warning of libjpeg about the picture that was decoded last; "" for none.
  const std::string& warning() const { return warning_; }

 private:
  void decode_png_rows(std::string_view file, std::int64_t rows, Image& image);
  void decode_jpeg_view(const View& view, Image& out);
  void open_jpeg(std::string_view file);
  void decode_once(std::string_view file, Image& image);
  void decode_view_once(std::string_view file, const ViewOf& view_of, Image& out);
  template <class Body>
  void with_patience(std::string_view file, const Body& body);

  DecodeOptions options_;
  Jpeg jpeg_;
  PlainPng png_;
  Resizer resizer_;
  Image whole_, spare_;
  std::string warning_;
};

// True if `file` is a JPEG that a lenient decoder accepts although libjpeg warns of it.
bool decodes_leniently(std::string_view file, DecodeOptions options);

// Smallest ratio of the shrunk picture's size to its size in the view.
inline constexpr std::int64_t kReserve = 2;

// Decoders of one format, with the same errors. decode_png() uses libpng; Decoder falls back on it
// if PlainPng cannot decode a file.
void decode_png(std::string_view file, Image& image, std::int64_t most_pixels = kMaxPixels);
void decode_webp(std::string_view file, Image& image, std::int64_t most_pixels = kMaxPixels);

}  // namespace scaletrain::data
