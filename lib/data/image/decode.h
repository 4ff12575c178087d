// Decodes PNG, JPEG, WebP and rgb8 (docs/reference/formats/rgb8.md) files to 8-bit RGB.
//
// Grey and CMYK are converted to RGB, alpha is dropped, and 16-bit values are scaled to 8 bits. The
// format is detected from the file's first bytes, since extensions are often wrong. Any damage,
// including a warning of libjpeg, is an error unless DecodeOptions allows it: a half-decoded image
// must not be trained on.
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
  bool exif_orientation = false;         // rotate upright by the EXIF orientation
  bool lenient_jpeg = false;             // JPEG: decodes despite libjpeg's warnings
  std::int64_t max_pixels = kMaxPixels;  // limit of width * height
};

// Decoders with their working memory, for one thread. All functions throw std::invalid_argument
// describing the problem of the file.
class Decoder {
 public:
  explicit Decoder(DecodeOptions options = {}) : options_(options) {}

  // Decodes the whole picture.
  void decode(std::string_view file, Image& image);

  // Decodes the view that `view_of` chooses for the picture's size. Only the needed part of a JPEG
  // is decoded, so damage outside of it may go unnoticed, but a truncated file does not. If the
  // view is at least 2 * kReserve times smaller than the picture, a JPEG is decoded at 1/2, 1/4 or
  // 1/8 of its size. Without that shrinking the result equals decode() and Resizer::resize() bit
  // for bit. With it, values of a photograph differ by less than 1 on average and by at most 20
  // (tests/data/view_test.py).
  void decode_view(std::string_view file, const ViewOf& view_of, Image& out);

  // Returns libjpeg's first warning about the last picture; "" if there was none.
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

// A picture that is decoded at a reduced size stays at least this many times larger than the view.
inline constexpr std::int64_t kReserve = 2;

// Decoders of single formats, with the same errors. decode_png() uses libpng; Decoder falls back to
// it for files that PlainPng does not support.
void decode_png(std::string_view file, Image& image, std::int64_t most_pixels = kMaxPixels);
void decode_webp(std::string_view file, Image& image, std::int64_t most_pixels = kMaxPixels);

}  // namespace scaletrain::data
