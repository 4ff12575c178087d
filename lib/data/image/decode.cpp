#include "lib/data/image/decode.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <stdexcept>

#include "lib/core/text/placeholder.h"
#include "lib/data/image/exif.h"
#include "lib/data/image/pixel_limit.h"
#include "lib/format/rgb8.h"

namespace scaletrain::data {
namespace {

enum class Format { kPng, kJpeg, kWebp, kRgb8 };

Format format_of(std::string_view file) {
  if (file.starts_with("\x89PNG\r\n\x1a\n")) return Format::kPng;
  if (file.starts_with("\xff\xd8\xff")) return Format::kJpeg;
  if (file.starts_with("RIFF") && file.substr(0, 12).ends_with("WEBP")) return Format::kWebp;
  if (file.starts_with(format::kRgb8Magic)) return Format::kRgb8;
  if (const auto placeholder = core::find_placeholder(file)) {
    throw std::invalid_argument("it " + placeholder->found);
  }
  throw std::invalid_argument("its first bytes are not those of PNG, JPEG, WebP or rgb8");
}

// Returns a view of the pixels inside the file's bytes.
ImageView open_rgb8(std::string_view file, std::int64_t most_pixels) {
  const format::Rgb8Size size = format::parse_rgb8(file);
  check_pixels(size.width, size.height, most_pixels);
  return {size.width, size.height,
          reinterpret_cast<const std::uint8_t*>(file.data()) + format::kRgb8HeaderBytes};
}

// Returns by which factor (1, 2, 4 or 8) a JPEG may be shrunk during decoding for `view`.
std::int64_t shrink_for(const View& view) {
  std::int64_t shrink = 1;
  while (shrink < 8 && view.source.x.size >= view.width * shrink * 2 * kReserve &&
         view.source.y.size >= view.height * shrink * 2 * kReserve) {
    shrink *= 2;
  }
  return shrink;
}

}  // namespace

void Decoder::open_jpeg(std::string_view file) {
  jpeg_.open(file);
  check_pixels(jpeg_.width(), jpeg_.height(), options_.max_pixels);
}

// Runs `body`; if it fails on a JPEG and lenient decoding is on, runs it again with libjpeg's
// warnings tolerated.
template <class Body>
void Decoder::with_patience(std::string_view file, const Body& body) {
  warning_.clear();
  if (!options_.lenient_jpeg || format_of(file) != Format::kJpeg) return body();
  try {
    return body();
  } catch (const std::invalid_argument&) {
    jpeg_.tolerate(true);
  }
  try {
    body();
  } catch (const std::invalid_argument&) {
    jpeg_.tolerate(false);
    throw;
  }
  warning_ = jpeg_.warning();
  jpeg_.tolerate(false);
}

void Decoder::decode(std::string_view file, Image& image) {
  with_patience(file, [&] { decode_once(file, image); });
}

void Decoder::decode_once(std::string_view file, Image& image) {
  switch (format_of(file)) {
    case Format::kPng:
      decode_png_rows(file, std::numeric_limits<std::int64_t>::max(), image);
      if (options_.exif_orientation) apply_orientation(png_orientation(file), image, spare_);
      return;
    case Format::kWebp:
      decode_webp(file, image, options_.max_pixels);
      if (options_.exif_orientation) apply_orientation(webp_orientation(file), image, spare_);
      return;
    case Format::kRgb8: {
      const ImageView pixels = open_rgb8(file, options_.max_pixels);
      image.reshape(pixels.width, pixels.height);
      std::copy(pixels.row(0), pixels.row(pixels.height), image.pixels.begin());
      return;
    }
    case Format::kJpeg:
      open_jpeg(file);
      const int orientation = options_.exif_orientation ? jpeg_.orientation() : 1;
      jpeg_.decode(image);
      apply_orientation(orientation, image, spare_);
  }
}

void Decoder::decode_view(std::string_view file, const ViewOf& view_of, Image& out) {
  std::optional<View> chosen;  // chosen once, since the choice may be random
  with_patience(file, [&] {
    decode_view_once(
        file,
        [&](std::int64_t width, std::int64_t height) {
          if (!chosen) chosen = view_of(width, height);
          return *chosen;
        },
        out);
  });
}

void Decoder::decode_view_once(std::string_view file, const ViewOf& view_of, Image& out) {
  const Format kind = format_of(file);
  if (kind == Format::kJpeg) {
    open_jpeg(file);
    if (!options_.exif_orientation || jpeg_.orientation() == 1) {
      return decode_jpeg_view(view_of(jpeg_.width(), jpeg_.height()), out);
    }
  }
  if (kind == Format::kPng && (!options_.exif_orientation || png_orientation(file) <= 1)) {
    // Rows below the part that the view needs are not decoded.
    if (const PngSize size = png_size(file); size.width > 0 && size.height > 0) {
      const Box needed = resizer_.prepare(view_of(size.width, size.height), 1);
      decode_png_rows(file, needed.y.begin + needed.y.size, whole_);
      return resizer_.finish(whole_, 0, 0, out);
    }
  }
  if (kind == Format::kRgb8) {
    const ImageView pixels = open_rgb8(file, options_.max_pixels);
    return resizer_.resize(pixels, view_of(pixels.width, pixels.height), out);
  }
  decode_once(file, whole_);
  resizer_.resize(whole_, view_of(whole_.width, whole_.height), out);
}

void Decoder::decode_png_rows(std::string_view file, std::int64_t rows, Image& image) {
  if (!png_.decode(file, rows, image, options_.max_pixels)) {
    decode_png(file, image, options_.max_pixels);
  }
}

void Decoder::decode_jpeg_view(const View& view, Image& out) {
  const std::int64_t shrink = shrink_for(view);
  const Box needed = resizer_.prepare(view, shrink);
  const Jpeg::Corner corner = jpeg_.decode_part(needed, shrink, whole_);
  resizer_.finish(whole_, corner.left, corner.top, out);
}

bool decodes_leniently(std::string_view file, DecodeOptions options) {
  options.lenient_jpeg = true;
  Decoder lenient(options);
  Image image;
  try {
    lenient.decode(file, image);
  } catch (const std::invalid_argument&) {
    return false;
  }
  return !lenient.warning().empty();
}

}  // namespace scaletrain::data
