// The first page of a TIFF through libtiff, whose messages come back as errors.
#include <fmt/format.h>
#include <tiffio.h>

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "app/foreign/foreign_image.h"
#include "lib/data/image/exif.h"

namespace scaletrain::app {
namespace {

constexpr std::int64_t kSpareBytes = std::int64_t{64} << 20;  // a strip's size beyond the picture's
constexpr tmsize_t kMostBytesAtOnce = tmsize_t{1} << 30;

// A file in memory, and libtiff's first error.
struct Source {
  std::string_view file;
  std::size_t place = 0;
  std::string error;
};

tmsize_t read_bytes(thandle_t handle, void* out, tmsize_t count) {
  auto* const source = static_cast<Source*>(handle);
  const std::string_view rest = source->file.substr(std::min(source->place, source->file.size()));
  const std::size_t bytes = std::min(rest.size(), static_cast<std::size_t>(count));
  std::memcpy(out, rest.data(), bytes);
  source->place += bytes;
  return static_cast<tmsize_t>(bytes);
}

tmsize_t write_bytes(thandle_t /*handle*/, void* /*bytes*/, tmsize_t /*count*/) { return 0; }

toff_t seek(thandle_t handle, toff_t offset, int whence) {
  auto* const source = static_cast<Source*>(handle);
  if (whence == SEEK_CUR) offset += source->place;
  if (whence == SEEK_END) offset += source->file.size();
  source->place = offset;
  return offset;
}

int close_nothing(thandle_t /*handle*/) { return 0; }

toff_t size_of(thandle_t handle) { return static_cast<Source*>(handle)->file.size(); }

int on_error(TIFF* /*tiff*/, void* user, const char* /*module*/, const char* format,
             std::va_list values) {
  auto* const source = static_cast<Source*>(user);
  if (!source->error.empty()) return 1;
  std::array<char, 256> text = {};
  std::vsnprintf(text.data(), text.size(), format, values);
  source->error = text.data();
  return 1;
}

int on_warning(TIFF* /*tiff*/, void* /*user*/, const char* /*module*/, const char* /*format*/,
               std::va_list /*values*/) {
  return 1;  // only odd tags, never pixels
}

struct Close {
  void operator()(TIFF* tiff) const { TIFFClose(tiff); }
  void operator()(TIFFOpenOptions* options) const { TIFFOpenOptionsFree(options); }
};

std::unique_ptr<TIFF, Close> open_tiff(Source& source) {
  const std::unique_ptr<TIFFOpenOptions, Close> options(TIFFOpenOptionsAlloc());
  if (!options) throw std::bad_alloc();
  TIFFOpenOptionsSetMaxSingleMemAlloc(options.get(), kMostBytesAtOnce);
  TIFFOpenOptionsSetErrorHandlerExtR(options.get(), on_error, &source);
  TIFFOpenOptionsSetWarningHandlerExtR(options.get(), on_warning, nullptr);
  // "m": not mapped; "r" is enough, as only the first page is read.
  return std::unique_ptr<TIFF, Close>(TIFFClientOpenExt("TIFF", "rm", &source, read_bytes,
                                                        write_bytes, seek, close_nothing, size_of,
                                                        nullptr, nullptr, options.get()));
}

template <class Value>
Value field(TIFF& tiff, std::uint32_t tag) {
  Value value = 0;
  TIFFGetFieldDefaulted(&tiff, tag, &value);
  return value;
}

// Refuses old JPEG, compressions without a codec, and samples that are not unsigned integers, since
// libtiff would return wrong colours.
void check_kind(TIFF& tiff) {
  const auto compression = field<std::uint16_t>(tiff, TIFFTAG_COMPRESSION);
  if (compression == COMPRESSION_OJPEG || TIFFIsCODECConfigured(compression) == 0) {
    throw std::invalid_argument(
        fmt::format("a TIFF with compression {}, which is not supported", compression));
  }
  const auto samples = field<std::uint16_t>(tiff, TIFFTAG_SAMPLEFORMAT);
  if (samples != SAMPLEFORMAT_UINT && samples != SAMPLEFORMAT_VOID) {
    throw std::invalid_argument(
        "a TIFF whose samples are not unsigned integers, which is not supported");
  }
}

// A strip or tile is unpacked whole.
void check_strips(TIFF& tiff, std::int64_t width, std::int64_t height) {
  const auto bytes = static_cast<std::int64_t>(TIFFIsTiled(&tiff) != 0 ? TIFFTileSize64(&tiff)
                                                                       : TIFFStripSize64(&tiff));
  const std::int64_t bits = std::int64_t{field<std::uint16_t>(tiff, TIFFTAG_BITSPERSAMPLE)} *
                            field<std::uint16_t>(tiff, TIFFTAG_SAMPLESPERPIXEL);
  if (bytes < 0 || bytes > kSpareBytes + width * height * ((bits + 7) / 8)) {
    throw std::invalid_argument("a strip or tile that is much larger than the picture");
  }
}

// True if the colours were multiplied with alpha. libtiff would multiply the others, so every
// picture is marked as multiplied, which leaves its colours as they are.
bool take_alpha(TIFF& tiff) {
  std::uint16_t count = 0;
  std::uint16_t* kinds = nullptr;
  TIFFGetFieldDefaulted(&tiff, TIFFTAG_EXTRASAMPLES, &count, &kinds);
  if (count == 0) return false;
  const bool is_multiplied = kinds[0] == EXTRASAMPLE_ASSOCALPHA;
  std::vector<std::uint16_t> as_they_are(kinds, kinds + count);
  as_they_are[0] = EXTRASAMPLE_ASSOCALPHA;
  TIFFSetField(&tiff, TIFFTAG_EXTRASAMPLES, count, as_they_are.data());
  return is_multiplied;
}

// Returns the pixels as stored: red in the lowest bits, then green, blue and alpha.
std::vector<std::uint32_t> read_pixels(TIFF& tiff, Source& source, std::uint32_t width,
                                       std::uint32_t height) {
  std::array<char, 1024> message = {};
  TIFFRGBAImage reader = {};
  if (TIFFRGBAImageOK(&tiff, message.data()) == 0 ||
      TIFFRGBAImageBegin(&reader, &tiff, /*stop=*/1, message.data()) == 0) {
    throw std::invalid_argument(fmt::format("a TIFF that is not supported: {}", message.data()));
  }
  const std::unique_ptr<TIFFRGBAImage, void (*)(TIFFRGBAImage*)> end(&reader, TIFFRGBAImageEnd);
  reader.req_orientation = reader.orientation;
  std::vector<std::uint32_t> pixels(std::size_t{width} * height);
  const int is_read = TIFFRGBAImageGet(&reader, pixels.data(), width, height);
  if (is_read == 0 || !source.error.empty()) {
    throw std::invalid_argument(source.error.empty() ? "the TIFF is damaged" : source.error);
  }
  return pixels;
}

// The colour before it was multiplied with alpha, as Pillow has it.
std::uint8_t divided(std::uint32_t value, std::uint32_t alpha) {
  if (alpha == 0 || alpha == 255) return static_cast<std::uint8_t>(value);
  return static_cast<std::uint8_t>(std::min<std::uint32_t>(255 * value / alpha, 255));
}

}  // namespace

void decode_tiff(std::string_view file, data::Image& image, std::int64_t most_pixels) {
  Source source{.file = file, .error = {}};
  const std::unique_ptr<TIFF, Close> tiff = open_tiff(source);
  if (!tiff) {
    throw std::invalid_argument(source.error.empty() ? "the TIFF is damaged" : source.error);
  }
  const auto width = field<std::uint32_t>(*tiff, TIFFTAG_IMAGEWIDTH);
  const auto height = field<std::uint32_t>(*tiff, TIFFTAG_IMAGELENGTH);
  if (width == 0 || height == 0) throw std::invalid_argument("a picture without pixels");
  // Sizes beyond any picture exceed every limit of pixels.
  data::check_pixels(width, std::min<std::int64_t>(height, INT32_MAX), most_pixels);
  check_kind(*tiff);
  check_strips(*tiff, width, height);
  const bool is_multiplied = take_alpha(*tiff);
  const auto orientation = field<std::uint16_t>(*tiff, TIFFTAG_ORIENTATION);
  const std::vector<std::uint32_t> pixels = read_pixels(*tiff, source, width, height);
  image.reshape(width, height);
  std::uint8_t* out = image.pixels.data();
  for (const std::uint32_t pixel : pixels) {
    const std::uint32_t alpha = is_multiplied ? TIFFGetA(pixel) : 255;
    for (const std::uint32_t value : {TIFFGetR(pixel), TIFFGetG(pixel), TIFFGetB(pixel)}) {
      *out++ = divided(value, alpha);
    }
  }
  data::Image spare;
  data::apply_orientation(orientation <= ORIENTATION_LEFTBOT ? orientation : 1, image, spare);
}

}  // namespace scaletrain::app
