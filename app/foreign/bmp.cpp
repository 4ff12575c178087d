// BMP, as Windows' BITMAPCOREHEADER, BITMAPINFOHEADER, BITMAPV4HEADER and BITMAPV5HEADER describe
// it (learn.microsoft.com, "Bitmap Storage"): 1, 4, 8, 16, 24 and 32 bits, with masks, RLE4 and
// RLE8.
#include <array>
#include <bit>
#include <cstddef>
#include <stdexcept>
#include <vector>

#include "app/foreign/foreign_image.h"

namespace scaletrain::app {
namespace {

constexpr std::size_t kFileHeader = 14, kCoreHeader = 12, kInfoHeader = 40, kOs2Header = 64;

enum Compression : std::uint32_t { kPlain = 0, kRle8 = 1, kRle4 = 2, kMasks = 3, kAlphaMasks = 6 };

using Colour = std::array<std::uint8_t, 3>;

[[noreturn]] void refuse(const char* found) { throw std::invalid_argument(found); }

std::uint8_t byte_at(std::string_view file, std::size_t place) {
  if (place >= file.size()) refuse("the file is truncated");
  return static_cast<std::uint8_t>(file[place]);
}

std::uint32_t number_at(std::string_view file, std::size_t place, std::size_t bytes) {
  std::uint32_t number = 0;
  for (std::size_t i = 0; i < bytes; ++i) {
    number |= std::uint32_t{byte_at(file, place + i)} << (8 * i);
  }
  return number;
}

// One colour of a pixel: the bits of `mask`, scaled to 255 as Pillow does, rounded down.
class Channel {
 public:
  explicit Channel(std::uint32_t mask)
      : shift_(mask == 0 ? 0U : static_cast<unsigned>(std::countr_zero(mask))),
        most_(mask >> shift_) {
    if ((most_ & (most_ + 1)) != 0) refuse("a mask of its colours has holes");
  }

  std::uint8_t of(std::uint32_t pixel) const {
    if (most_ == 0) return 0;
    return static_cast<std::uint8_t>(std::uint64_t{pixel >> shift_ & most_} * 255 / most_);
  }

 private:
  unsigned shift_;
  std::uint64_t most_;
};

struct Header {
  std::int64_t width = 0, height = 0;
  bool top_down = false;
  std::size_t bits = 0;
  std::uint32_t compression = kPlain;
  std::array<std::uint32_t, 3> masks = {};  // red, green, blue; 16 and 32 bits only
  std::vector<Colour> palette;              // with 8 bits and fewer
  std::size_t pixels = 0;                   // offset of the pixel data
};

// The default masks of 16 and 32 bits, or the file's.
std::array<std::uint32_t, 3> masks_of(std::string_view file, const Header& header) {
  if (header.compression == kPlain) {
    if (header.bits == 16) return {0x7c00, 0x03e0, 0x001f};
    return {0x00ff0000, 0x0000ff00, 0x000000ff};
  }
  std::array<std::uint32_t, 3> masks = {};
  for (std::size_t i = 0; i < masks.size(); ++i) {
    masks[i] = number_at(file, kFileHeader + kInfoHeader + 4 * i, 4);
  }
  return masks;
}

std::vector<Colour> palette_of(std::string_view file, std::size_t place, std::size_t count,
                               std::size_t bytes) {
  std::vector<Colour> palette;
  for (std::size_t i = 0; i < count; ++i, place += bytes) {
    palette.push_back({byte_at(file, place + 2), byte_at(file, place + 1), byte_at(file, place)});
  }
  return palette;
}

void check_kind(const Header& header, std::size_t header_bytes) {
  const auto is_of_bits = [&](auto... bits) { return ((header.bits == bits) || ...); };
  bool is_known = false;
  switch (header.compression) {
    case kPlain:
      is_known = is_of_bits(1U, 4U, 8U, 16U, 24U, 32U);
      break;
    case kRle8:
      is_known = is_of_bits(8U);
      break;
    case kRle4:
      is_known = is_of_bits(4U);
      break;
    case kMasks:
    case kAlphaMasks:
      is_known = is_of_bits(16U, 32U) && header_bytes != kOs2Header;
      break;
    default:
      break;
  }
  if (!is_known) refuse("a kind of BMP that is not supported");
}

Header read_header(std::string_view file) {
  Header header;
  header.pixels = number_at(file, 10, 4);
  const std::size_t bytes = number_at(file, kFileHeader, 4);
  std::size_t colours = 0;
  if (bytes == kCoreHeader) {
    header.width = number_at(file, 18, 2);
    header.height = number_at(file, 20, 2);
    header.bits = number_at(file, 24, 2);
  } else {
    if (bytes < kInfoHeader || bytes > 1024) refuse("a kind of BMP that is not supported");
    header.width = static_cast<std::int32_t>(number_at(file, 18, 4));
    header.height = static_cast<std::int32_t>(number_at(file, 22, 4));
    header.top_down = header.height < 0;
    if (header.top_down) header.height = -header.height;
    header.bits = number_at(file, 28, 2);
    header.compression = number_at(file, 30, 4);
    colours = number_at(file, 46, 4);
  }
  check_kind(header, bytes);
  if (header.width <= 0 || header.height <= 0) refuse("a picture without pixels");
  if (header.bits <= 8) {
    const std::size_t all = std::size_t{1} << header.bits;
    if (colours > all) refuse("more colours than its pixels can name");
    header.palette = palette_of(file, kFileHeader + bytes, colours == 0 ? all : colours,
                                bytes == kCoreHeader ? 3 : 4);
  } else if (header.bits != 24) {
    header.masks = masks_of(file, header);
  }
  if (header.pixels < kFileHeader + bytes) refuse("its pixels begin inside of its header");
  return header;
}

class Rows {
 public:
  Rows(const Header& header, data::Image& image) : header_(header), image_(image) {
    image.reshape(header.width, header.height);
  }

  // Row `number` as the file counts them.
  std::uint8_t* row(std::int64_t number) const {
    return image_.row(header_.top_down ? number : header_.height - 1 - number);
  }

  void set_index(std::int64_t row_number, std::int64_t x, std::size_t index) const {
    if (index >= header_.palette.size()) refuse("a pixel has no colour in the palette");
    std::copy(header_.palette[index].begin(), header_.palette[index].end(),
              row(row_number) + x * data::kChannels);
  }

 private:
  const Header& header_;
  data::Image& image_;
};

// Reads uncompressed pixels; each row begins at a multiple of four bytes.
void read_plain(std::string_view file, const Header& header, const Rows& rows) {
  const std::size_t stride = (static_cast<std::size_t>(header.width) * header.bits + 31) / 32 * 4;
  if (header.pixels > file.size() ||
      (file.size() - header.pixels) / stride < static_cast<std::size_t>(header.height)) {
    refuse("the file is truncated");
  }
  const std::array channels{Channel(header.masks[0]), Channel(header.masks[1]),
                            Channel(header.masks[2])};
  const std::size_t bytes = header.bits / 8;
  for (std::int64_t y = 0; y < header.height; ++y) {
    const std::string_view line =
        file.substr(header.pixels + static_cast<std::size_t>(y) * stride, stride);
    std::uint8_t* out = rows.row(y);
    for (std::int64_t x = 0; x < header.width; ++x, out += data::kChannels) {
      const auto place = static_cast<std::size_t>(x);
      if (header.bits <= 8) {
        const std::size_t in_byte = 8 / header.bits;
        const std::size_t shift = (in_byte - 1 - place % in_byte) * header.bits;
        const std::size_t index = byte_at(line, place / in_byte) >> shift;
        rows.set_index(y, x, index & ((std::size_t{1} << header.bits) - 1));
      } else if (header.bits == 24) {
        for (std::size_t i = 0; i < 3; ++i) out[i] = byte_at(line, 3 * place + 2 - i);
      } else {
        const std::uint32_t pixel = number_at(line, place * bytes, bytes);
        for (std::size_t i = 0; i < 3; ++i) out[i] = channels[i].of(pixel);
      }
    }
  }
}

// RLE4 and RLE8: pairs of bytes. Pixels that the runs skip get the first colour.
class RunReader {
 public:
  RunReader(std::string_view file, const Header& header, const Rows& rows)
      : header_(header),
        rows_(rows),
        data_(file.substr(std::min(header.pixels, file.size()))),
        is_rle4_(header.compression == kRle4) {}

  void read() {
    for (std::int64_t y = 0; y < header_.height; ++y) {
      for (std::int64_t x = 0; x < header_.width; ++x) rows_.set_index(y, x, 0);
    }
    while (y_ < header_.height) {
      const std::size_t count = next();
      const std::size_t value = next();
      if (count > 0) {
        for (std::size_t i = 0; i < count; ++i) set(part_of(value, i));
      } else if (value == kEndOfLine) {
        x_ = 0;
        ++y_;
      } else if (value == kEnd) {
        return;
      } else if (value == kMove) {
        x_ += next();
        y_ += next();
      } else {
        copy(value);
      }
    }
  }

 private:
  enum Escape : std::uint8_t { kEndOfLine = 0, kEnd = 1, kMove = 2 };

  std::uint8_t next() { return byte_at(data_, place_++); }

  // Index of a pixel in a byte: RLE4 packs two pixels into it, the high bits first.
  std::size_t part_of(std::size_t value, std::size_t number) const {
    if (!is_rle4_) return value;
    return number % 2 == 0 ? value >> 4 : value & 15;
  }

  void set(std::size_t index) {
    if (x_ >= header_.width || y_ >= header_.height) refuse("a run goes beyond the picture");
    rows_.set_index(y_, x_++, index);
  }

  // `count` pixels as they are, in whole pairs of bytes.
  void copy(std::size_t count) {
    const std::size_t begin = place_;
    std::size_t value = 0;
    for (std::size_t i = 0; i < count; ++i) {
      if (!is_rle4_ || i % 2 == 0) value = next();
      set(part_of(value, i));
    }
    if ((place_ - begin) % 2 != 0) ++place_;
  }

  const Header& header_;
  const Rows& rows_;
  std::string_view data_;
  bool is_rle4_;
  std::size_t place_ = 0;
  std::int64_t x_ = 0, y_ = 0;
};

}  // namespace

void decode_bmp(std::string_view file, data::Image& image, std::int64_t most_pixels) {
  const Header header = read_header(file);
  data::check_pixels(header.width, header.height, most_pixels);
  const Rows rows(header, image);
  if (header.compression == kRle8 || header.compression == kRle4) {
    RunReader(file, header, rows).read();
  } else {
    read_plain(file, header, rows);
  }
}

}  // namespace scaletrain::app
