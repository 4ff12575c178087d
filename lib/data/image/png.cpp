// PNG decoding with libpng, whose errors are longjmps: no object with a destructor lives between a
// setjmp and the calls that may jump to it.
#include <png.h>

#include <csetjmp>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "lib/data/image/decode.h"
#include "lib/data/image/pixel_limit.h"

namespace scaletrain::data {
namespace {

// State of libpng's callbacks.
struct Source {
  const unsigned char* data;
  std::size_t bytes;
  char message[120];  // NOLINT(modernize-avoid-c-arrays): filled across a long jump
};

void read_bytes(png_structp png, png_bytep out, png_size_t bytes) {
  auto* const source = static_cast<Source*>(png_get_io_ptr(png));
  if (bytes > source->bytes) png_error(png, "the file is truncated");
  std::memcpy(out, source->data, bytes);
  source->data += bytes;
  source->bytes -= bytes;
}

[[noreturn]] void on_error(png_structp png, png_const_charp message) {
  auto* const source = static_cast<Source*>(png_get_error_ptr(png));
  std::strncpy(&source->message[0], message, sizeof(source->message) - 1);
  std::longjmp(*png_set_longjmp_fn(png, std::longjmp, sizeof(std::jmp_buf)), 1);
}

// libpng warns about colour profiles and text, never about pixels.
void on_warning(png_structp /*png*/, png_const_charp /*message*/) {}

struct Reader {
  png_structp png = nullptr;
  png_infop info = nullptr;
  ~Reader() { png_destroy_read_struct(&png, &info, nullptr); }
};

// Reads the header and requests 8-bit RGB; false if libpng failed.
bool read_header(Reader& reader, Source& source) {
  if (setjmp(png_jmpbuf(reader.png)) != 0) return false;  // NOLINT(cert-err52-cpp)
  png_set_read_fn(reader.png, &source, read_bytes);
  png_set_user_limits(reader.png, 0x7fffffff, 0x7fffffff);  // check_pixels() has the limit
  png_read_info(reader.png, reader.info);
  png_set_expand(reader.png);  // expands palettes, and grey of fewer than 8 bits
  png_set_scale_16(reader.png);
  png_set_strip_alpha(reader.png);
  png_set_gray_to_rgb(reader.png);
  png_set_interlace_handling(reader.png);
  png_read_update_info(reader.png, reader.info);
  return true;
}

bool read_pixels(Reader& reader, png_bytepp rows) {
  if (setjmp(png_jmpbuf(reader.png)) != 0) return false;  // NOLINT(cert-err52-cpp)
  png_read_image(reader.png, rows);
  png_read_end(reader.png, nullptr);  // checks that the file is complete
  return true;
}

}  // namespace

void decode_png(std::string_view file, Image& image, std::int64_t most_pixels) {
  Source source{reinterpret_cast<const unsigned char*>(file.data()), file.size(), {}};
  Reader reader;
  reader.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &source, on_error, on_warning);
  if (reader.png == nullptr) throw std::bad_alloc();
  reader.info = png_create_info_struct(reader.png);
  if (reader.info == nullptr) throw std::bad_alloc();
  if (!read_header(reader, source)) throw std::invalid_argument(&source.message[0]);
  const auto width = static_cast<std::int64_t>(png_get_image_width(reader.png, reader.info));
  const auto height = static_cast<std::int64_t>(png_get_image_height(reader.png, reader.info));
  check_pixels(width, height, most_pixels);
  image.reshape(width, height);
  std::vector<png_bytep> rows;
  for (std::int64_t y = 0; y < height; ++y) rows.push_back(image.row(y));
  if (!read_pixels(reader, rows.data())) throw std::invalid_argument(&source.message[0]);
}

}  // namespace scaletrain::data
