// The first frame of a GIF through giflib.
#include <gif_lib.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <vector>

#include "app/foreign/foreign_image.h"

namespace scaletrain::app {
namespace {

class GifReader {
 public:
  explicit GifReader(std::string_view file) : left_(file) {
    int error = 0;
    gif_.reset(DGifOpen(this, read_bytes, &error));
    if (!gif_) fail(error);
  }
  GifReader(const GifReader&) = delete;
  GifReader& operator=(const GifReader&) = delete;

  GifFileType& gif() const { return *gif_; }

  // Checks the status that giflib's functions return.
  void check(int status) const {
    if (status == GIF_ERROR) fail(gif_->Error);
  }

 private:
  struct Close {
    void operator()(GifFileType* gif) const { DGifCloseFile(gif, nullptr); }
  };

  static int read_bytes(GifFileType* gif, GifByteType* out, int count) {
    auto* const reader = static_cast<GifReader*>(gif->UserData);
    const std::size_t bytes = std::min(reader->left_.size(), static_cast<std::size_t>(count));
    std::memcpy(out, reader->left_.data(), bytes);
    reader->left_.remove_prefix(bytes);
    reader->is_truncated_ = reader->is_truncated_ || bytes < static_cast<std::size_t>(count);
    return static_cast<int>(bytes);
  }

  [[noreturn]] void fail(int error) const {
    if (error == D_GIF_ERR_NOT_ENOUGH_MEM) throw std::bad_alloc();
    if (is_truncated_) throw std::invalid_argument("the file is truncated");
    const char* const text = GifErrorString(error);
    throw std::invalid_argument(text == nullptr ? "the GIF is damaged" : text);
  }

  std::string_view left_;
  bool is_truncated_ = false;
  std::unique_ptr<GifFileType, Close> gif_;
};

// Reads up to the first frame; returns the index of its transparent colour, if there is one.
std::optional<std::size_t> find_frame(const GifReader& reader) {
  std::optional<std::size_t> transparent;
  GifRecordType type = UNDEFINED_RECORD_TYPE;
  for (;;) {
    reader.check(DGifGetRecordType(&reader.gif(), &type));
    if (type == TERMINATE_RECORD_TYPE) throw std::invalid_argument("a GIF without a frame");
    if (type == IMAGE_DESC_RECORD_TYPE) {
      reader.check(DGifGetImageDesc(&reader.gif()));
      return transparent;
    }
    int code = 0;
    GifByteType* bytes = nullptr;  // their number, then they
    reader.check(DGifGetExtension(&reader.gif(), &code, &bytes));
    while (bytes != nullptr) {
      GraphicsControlBlock block = {};
      if (code == GRAPHICS_EXT_FUNC_CODE &&
          DGifExtensionToGCB(bytes[0], bytes + 1, &block) == GIF_OK &&
          block.TransparentColor != NO_TRANSPARENT_COLOR) {
        transparent = static_cast<std::size_t>(block.TransparentColor);
      }
      reader.check(DGifGetExtensionNext(&reader.gif(), &bytes));
    }
  }
}

// A frame without any colours is grey, as Pillow has it.
std::array<std::uint8_t, 3> colour_of(const ColorMapObject* map, std::size_t index) {
  if (map == nullptr) {
    const auto grey = static_cast<std::uint8_t>(index);
    return {grey, grey, grey};
  }
  if (index >= static_cast<std::size_t>(map->ColorCount)) {
    throw std::invalid_argument("a pixel has no colour in the palette");
  }
  const GifColorType& colour = map->Colors[index];
  return {colour.Red, colour.Green, colour.Blue};
}

// The rows of an interlaced frame in the order in which they are stored.
std::vector<std::int64_t> stored_rows(std::int64_t height, bool interlaced) {
  struct Pass {
    std::int64_t first, step;
  };
  static constexpr std::array kInterlaced{Pass{0, 8}, Pass{4, 8}, Pass{2, 4}, Pass{1, 2}};
  std::vector<std::int64_t> rows;
  for (const Pass& pass : kInterlaced) {
    const Pass used = interlaced ? pass : Pass{0, 1};
    for (std::int64_t y = used.first; y < height; y += used.step) rows.push_back(y);
    if (!interlaced) break;
  }
  return rows;
}

}  // namespace

// Decodes as Pillow does: the area outside the frame has the transparent colour, or the first one.
void decode_gif(std::string_view file, data::Image& image, std::int64_t most_pixels) {
  const GifReader reader(file);
  const std::optional<std::size_t> transparent = find_frame(reader);
  const GifFileType& gif = reader.gif();
  const std::int64_t left = gif.Image.Left, top = gif.Image.Top;
  const std::int64_t width = gif.Image.Width, height = gif.Image.Height;
  if (width <= 0 || height <= 0) throw std::invalid_argument("a picture without pixels");
  image.width = std::max<std::int64_t>(gif.SWidth, left + width);
  image.height = std::max<std::int64_t>(gif.SHeight, top + height);
  data::check_pixels(image.width, image.height, most_pixels);
  image.reshape(image.width, image.height);
  const ColorMapObject* const map =
      gif.Image.ColorMap == nullptr ? gif.SColorMap : gif.Image.ColorMap;
  if (image.width > width || image.height > height) {
    const auto around = colour_of(map, transparent.value_or(0));
    for (std::size_t i = 0; i < image.pixels.size(); ++i) image.pixels[i] = around[i % 3];
  }
  std::vector<GifByteType> line(static_cast<std::size_t>(width));
  for (const std::int64_t y : stored_rows(height, gif.Image.Interlace)) {
    reader.check(DGifGetLine(&reader.gif(), line.data(), static_cast<int>(width)));
    std::uint8_t* out = image.row(top + y) + left * data::kChannels;
    for (const GifByteType index : line) {
      const auto colour = colour_of(map, index);
      out = std::copy(colour.begin(), colour.end(), out);
    }
  }
}

}  // namespace scaletrain::app
