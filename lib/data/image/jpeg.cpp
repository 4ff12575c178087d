#include "lib/data/image/jpeg.h"

#include <jerror.h>
#include <jpeglib.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <vector>

#include "lib/data/image/exif.h"
#include "lib/data/image/jpeg_guard.h"
#include "lib/data/image/jpeg_huffman.h"

namespace scaletrain::data {
namespace {

constexpr int kExifMarker = JPEG_APP0 + 1;
constexpr std::int64_t kMargin = 2;  // columns: chroma interpolation reads neighbours

}  // namespace

struct Jpeg::State {
  jpeg_decompress_struct info = {};
  JpegGuard guard;
  std::string_view file;
  std::vector<std::uint8_t> cmyk;  // one row
  JpegHuffman huffman;
  bool took_over = false;  // true if our Huffman decoder decodes the current file

  State() { create(); }
  ~State() { jpeg_destroy_decompress(&info); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  void create() {
    info = {};
    info.err = guard.errors();
    jpeg_create_decompress(&info);  // the library ends the process if there is no memory
    jpeg_save_markers(&info, kExifMarker, 0xffff);
  }

  // Runs `body`, whose library calls may fail.
  template <class Body>
  void guarded(const Body& body) {
    if (guard.run(body)) return;
    jpeg_destroy_decompress(&info);  // its state after a failure is unusable
    create();
    throw std::invalid_argument(guard.message());
  }

  [[noreturn]] void fail(int code) { JpegGuard::fail(reinterpret_cast<j_common_ptr>(&info), code); }

  bool is_cmyk() const {
    return info.jpeg_color_space == JCS_CMYK || info.jpeg_color_space == JCS_YCCK;
  }

  Corner decode(const Box& part, std::int64_t shrink, bool with_own_huffman, Image& image);
  void read_rows(std::int64_t end, Image& image);
  void check_end();
};

Jpeg::Corner Jpeg::State::decode(const Box& part, std::int64_t shrink, bool with_own_huffman,
                                 Image& image) {
  Corner corner{0, part.y.begin};
  took_over = false;
  guarded([&] {
    info.scale_num = 1;
    info.scale_denom = static_cast<unsigned>(shrink);
    info.out_color_space = is_cmyk() ? JCS_CMYK : JCS_RGB;
    jpeg_start_decompress(&info);
    if (with_own_huffman && jpeg_has_multiple_scans(&info) == 0)
      took_over = huffman.take_over(info);
    const std::int64_t first = std::max<std::int64_t>(0, part.x.begin - kMargin);
    const std::int64_t end =
        std::min<std::int64_t>(info.output_width, part.x.begin + part.x.size + kMargin);
    auto left = static_cast<JDIMENSION>(first);
    auto columns = static_cast<JDIMENSION>(end - first);
    if (columns < info.output_width) jpeg_crop_scanline(&info, &left, &columns);
    corner.left = left;
    image.reshape(columns, part.y.size);
    if (is_cmyk()) cmyk.resize(std::size_t{columns} * 4);
    if (part.y.begin > 0) jpeg_skip_scanlines(&info, static_cast<JDIMENSION>(part.y.begin));
    read_rows(part.y.begin + part.y.size, image);
    if (info.output_scanline == info.output_height) {
      if (took_over && !huffman.at_end()) fail(JERR_BAD_DCT_COEF);
      jpeg_finish_decompress(&info);
    } else {
      check_end();
      jpeg_abort_decompress(&info);
    }
  });
  return corner;
}

// Reads rows up to `end`; the first row that is read becomes the image's first row.
void Jpeg::State::read_rows(std::int64_t end, Image& image) {
  constexpr std::size_t kRows = 16;
  std::array<JSAMPROW, kRows> rows{};
  const auto first = static_cast<std::int64_t>(info.output_scanline);
  while (info.output_scanline < end) {
    const std::int64_t y = static_cast<std::int64_t>(info.output_scanline) - first;
    if (is_cmyk()) {
      rows[0] = cmyk.data();
      jpeg_read_scanlines(&info, rows.data(), 1);
      // Adobe's inverted CMYK, as all programs write it: 255 is no ink.
      std::uint8_t* to = image.row(y);
      for (const std::uint8_t* in = cmyk.data(); in != cmyk.data() + cmyk.size(); in += 4) {
        for (int c = 0; c < 3; ++c) *to++ = static_cast<std::uint8_t>((in[c] * in[3] + 127) / 255);
      }
      continue;
    }
    const auto count = static_cast<JDIMENSION>(std::min<std::int64_t>(kRows, end - first - y));
    for (JDIMENSION i = 0; i < count; ++i) rows[i] = image.row(y + i);
    jpeg_read_scanlines(&info, rows.data(), count);
  }
}

// Checks that the file continues to its end marker.
void Jpeg::State::check_end() {
  const jpeg_source_mgr& source = *info.src;
  const std::string_view rest(reinterpret_cast<const char*>(source.next_input_byte),
                              source.bytes_in_buffer);
  // A progressive file was read completely at the start.
  if (jpeg_has_multiple_scans(&info) != 0) return;
  if (info.unread_marker == JPEG_EOI || rest.find("\xff\xd9") != std::string_view::npos) return;
  JpegGuard::warn(reinterpret_cast<j_common_ptr>(&info), JWRN_JPEG_EOF);
}

Jpeg::Jpeg() : state_(std::make_unique<State>()) {}
Jpeg::~Jpeg() = default;

void Jpeg::tolerate(bool tolerates) { state_->guard.tolerate(tolerates); }
const char* Jpeg::warning() const { return state_->guard.warning(); }

void Jpeg::open(std::string_view file) {
  State& state = *state_;
  jpeg_abort_decompress(&state.info);
  state.file = file;
  state.guarded([&] {
    jpeg_mem_src(&state.info, reinterpret_cast<const unsigned char*>(file.data()), file.size());
    jpeg_read_header(&state.info, TRUE);
  });
}

std::int64_t Jpeg::width() const { return state_->info.image_width; }
std::int64_t Jpeg::height() const { return state_->info.image_height; }

int Jpeg::orientation() const {
  for (auto* marker = state_->info.marker_list; marker != nullptr; marker = marker->next) {
    if (marker->marker != kExifMarker) continue;
    const int found =
        exif_orientation({reinterpret_cast<const char*>(marker->data), marker->data_length});
    if (found != 0) return found;
  }
  return 1;
}

void Jpeg::decode(Image& image) { decode_part({{0, width()}, {0, height()}}, 1, image); }

Jpeg::Corner Jpeg::decode_part(const Box& part, std::int64_t shrink, Image& image) {
  if (state_->guard.tolerates()) return state_->decode(part, shrink, false, image);
  try {
    return state_->decode(part, shrink, true, image);
  } catch (const std::invalid_argument&) {
    if (!state_->took_over) throw;
  }
  open(state_->file);  // libjpeg alone reports errors of the file, if there are any
  return state_->decode(part, shrink, false, image);
}

}  // namespace scaletrain::data
