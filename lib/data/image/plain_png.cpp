#include "lib/data/image/plain_png.h"

#include <libdeflate.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>

#include "lib/data/image/clones.h"
#include "lib/data/image/pixel_limit.h"

namespace scaletrain::data {
namespace {

// Colour types of the PNG specification (W3C, third edition), 11.2.1.
enum class ColourType { kGrey = 0, kRgb = 2, kPalette = 3, kGreyAlpha = 4, kRgba = 6 };
enum class RowFilter { kNone, kSub, kUp, kAverage, kPaeth };

constexpr std::size_t kSignatureBytes = 8;
constexpr std::size_t kChunkFrame = 12;  // length, type and checksum

std::uint32_t big_endian(std::string_view bytes) {
  std::uint32_t value = 0;
  for (const char byte : bytes.substr(0, 4)) value = value << 8 | static_cast<std::uint8_t>(byte);
  return value;
}

struct Chunk {
  std::string_view type, data;
};

// Returns the chunk at `place`, with its checksum verified; an empty type if there is none.
Chunk chunk_at(std::string_view file, std::size_t place) {
  if (file.size() < kChunkFrame || place > file.size() - kChunkFrame) return {};
  const std::size_t bytes = big_endian(file.substr(place));
  if (bytes > file.size() - kChunkFrame - place) return {};
  const std::string_view covered = file.substr(place + 4, bytes + 4);
  if (libdeflate_crc32(0, covered.data(), covered.size()) !=
      big_endian(file.substr(place + 8 + bytes))) {
    return {};
  }
  return {covered.substr(0, 4), covered.substr(4)};
}

std::int64_t channels_of(ColourType type) {
  switch (type) {
    case ColourType::kGreyAlpha:
      return 2;
    case ColourType::kRgb:
      return 3;
    case ColourType::kRgba:
      return 4;
    default:
      return 1;
  }
}

using PixelBytes = std::uint8_t __attribute__((vector_size(16)));
// One pixel, and as many unused values.
using Shorts = std::int16_t __attribute__((vector_size(16)));
using Words = std::uint32_t __attribute__((vector_size(16)));

constexpr std::size_t kLoad = 4;  // bytes that are loaded at a pixel, whatever its size

// Widens bytes to 16 bits by shuffles, since GCC 12 converts vectors of bytes one by one.
Shorts load(const std::uint8_t* pixel) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, pixel, kLoad);
  const auto bytes = reinterpret_cast<PixelBytes>(Words{bits, 0, 0, 0});
  return reinterpret_cast<Shorts>(__builtin_shufflevector(bytes, PixelBytes{}, 0, 16, 1, 17, 2, 18,
                                                          3, 19, 4, 20, 5, 21, 6, 22, 7, 23));
}

template <int kBytes>
Shorts store(Shorts value, std::uint8_t* pixel) {
  value &= 0xff;
  const auto wide = reinterpret_cast<PixelBytes>(value);
  const PixelBytes bytes =
      __builtin_shufflevector(wide, wide, 0, 2, 4, 6, 8, 10, 12, 14, 0, 2, 4, 6, 8, 10, 12, 14);
  const std::uint32_t bits = reinterpret_cast<Words>(bytes)[0];
  std::memcpy(pixel, &bits, kBytes);
  return value;
}

Shorts magnitude(Shorts value) { return value < 0 ? -value : value; }

// Returns the neighbour that is nearest to left + above - above_left.
Shorts paeth(Shorts left, Shorts above, Shorts above_left) {
  const Shorts far_left = magnitude(above - above_left);
  const Shorts far_above = magnitude(left - above_left);
  const Shorts far_corner = magnitude(left + above - above_left - above_left);
  const Shorts least = far_above < far_corner ? far_above : far_corner;
  const Shorts nearer = far_above <= far_corner ? above : above_left;
  return far_left <= least ? left : nearer;
}

// Undoes the filter of one row of `bytes`; `above`: the previous row, already unfiltered. Reads up
// to kLoad bytes past both rows.
template <int kBytes>
inline void unfilter_row(RowFilter filter, const std::uint8_t* in, const std::uint8_t* above,
                         std::uint8_t* out, std::int64_t bytes) {
  Shorts left{}, above_left{};
  switch (filter) {
    case RowFilter::kNone:
      std::memcpy(out, in, static_cast<std::size_t>(bytes));
      return;
    case RowFilter::kUp:
      for (std::int64_t i = 0; i < bytes; ++i) out[i] = static_cast<std::uint8_t>(in[i] + above[i]);
      return;
    case RowFilter::kSub:
      for (std::int64_t i = 0; i < bytes; i += kBytes) {
        left = store<kBytes>(load(in + i) + left, out + i);
      }
      return;
    case RowFilter::kAverage:
      for (std::int64_t i = 0; i < bytes; i += kBytes) {
        const Shorts mean = (left + load(above + i)) >> 1;
        left = store<kBytes>(load(in + i) + mean, out + i);
      }
      return;
    case RowFilter::kPaeth:
      for (std::int64_t i = 0; i < bytes; i += kBytes) {
        const Shorts up = load(above + i);
        left = store<kBytes>(load(in + i) + paeth(left, up, above_left), out + i);
        above_left = up;
      }
      return;
  }
}

SCALETRAIN_CLONES void unfilter(RowFilter filter, std::int64_t pixel_bytes, const std::uint8_t* in,
                                const std::uint8_t* above, std::uint8_t* out, std::int64_t bytes) {
  switch (pixel_bytes) {
    case 1:
      return unfilter_row<1>(filter, in, above, out, bytes);
    case 2:
      return unfilter_row<2>(filter, in, above, out, bytes);
    case 3:
      return unfilter_row<3>(filter, in, above, out, bytes);
    default:
      return unfilter_row<4>(filter, in, above, out, bytes);
  }
}

}  // namespace

struct PlainPng::Header {
  std::int64_t width = 0, height = 0;
  ColourType type = ColourType::kRgb;
  std::string_view palette;
  std::string_view packed;  // the zlib stream

  std::int64_t row_bytes() const { return width * channels_of(type); }
  void to_rgb(const std::uint8_t* in, std::uint8_t* out) const;
  bool knows_all_colours(const std::uint8_t* row) const;
};

void PlainPng::Header::to_rgb(const std::uint8_t* in, std::uint8_t* out) const {
  const std::int64_t channels = channels_of(type);
  for (std::int64_t x = 0; x < width; ++x, in += channels, out += kChannels) {
    if (type == ColourType::kPalette) {
      std::memcpy(out, palette.data() + std::size_t{*in} * kChannels, kChannels);
    } else if (channels < kChannels) {
      std::fill_n(out, kChannels, *in);
    } else {
      std::memcpy(out, in, kChannels);
    }
  }
}

bool PlainPng::Header::knows_all_colours(const std::uint8_t* row) const {
  return type != ColourType::kPalette ||
         *std::max_element(row, row + width) < palette.size() / kChannels;
}

PngSize png_size(std::string_view file) {
  const Chunk first = chunk_at(file, kSignatureBytes);
  if (first.type != "IHDR" || first.data.size() != 13) return {};
  return {big_endian(first.data), big_endian(first.data.substr(4))};
}

PlainPng::PlainPng() : inflater_(libdeflate_alloc_decompressor(), libdeflate_free_decompressor) {
  if (inflater_ == nullptr) throw std::bad_alloc();
}
PlainPng::~PlainPng() = default;

// Reads the header and the compressed data; false if the file is not supported or damaged.
bool PlainPng::collect(std::string_view file, Header& header) {
  const PngSize size = png_size(file);
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  if (size.width < 1 || size.height < 1 || size.width > kMost || size.height > kMost) return false;
  header.width = size.width;
  header.height = size.height;
  const std::string_view rest = chunk_at(file, kSignatureBytes).data.substr(8);
  header.type = static_cast<ColourType>(rest[1]);
  // Supported: 8 bits, the standard methods, not interlaced.
  if (rest[0] != 8 || rest[1] == 1 || rest[1] == 5 || rest[1] < 0 || rest[1] > 6 ||
      rest.substr(2) != std::string_view("\0\0\0", 3)) {
    return false;
  }
  packed_.clear();
  bool ended = false;  // data chunks must be consecutive
  std::size_t place = kSignatureBytes + kChunkFrame + 13;
  for (;;) {
    const Chunk chunk = chunk_at(file, place);
    if (chunk.type.empty()) return false;
    place += kChunkFrame + chunk.data.size();
    const bool first = header.packed.empty();
    if (chunk.type == "IDAT") {
      if (ended) return false;
      if (first) {
        header.packed = chunk.data;
        continue;
      }
      if (packed_.empty()) packed_.assign(header.packed.begin(), header.packed.end());
      packed_.insert(packed_.end(), chunk.data.begin(), chunk.data.end());
      header.packed = {reinterpret_cast<const char*>(packed_.data()), packed_.size()};
      continue;
    }
    ended = !first;
    if (chunk.type == "IEND") break;
    if (chunk.type == "PLTE") {
      if (!first || !header.palette.empty() || chunk.data.size() % kChannels != 0) return false;
      header.palette = chunk.data;
    } else if ((static_cast<std::uint8_t>(chunk.type[0]) & 0x20) == 0) {
      return false;  // an unknown critical chunk
    }
  }
  return !header.packed.empty() && (header.type != ColourType::kPalette || !header.palette.empty());
}

bool PlainPng::decode(std::string_view file, std::int64_t rows, Image& image,
                      std::int64_t most_pixels) {
  Header header;
  if (!collect(file, header)) return false;
  check_pixels(header.width, header.height, most_pixels);
  const std::int64_t row_bytes = header.row_bytes();
  const auto filtered_bytes = static_cast<std::size_t>((row_bytes + 1) * header.height);
  filtered_.resize(filtered_bytes + kLoad);
  const libdeflate_result result =
      libdeflate_zlib_decompress(inflater_.get(), header.packed.data(), header.packed.size(),
                                 filtered_.data(), filtered_bytes, nullptr);
  if (result != LIBDEFLATE_SUCCESS) return false;
  const bool is_rgb = header.type == ColourType::kRgb;
  image.reshape(header.width, std::min(rows, header.height));
  row_.assign(static_cast<std::size_t>(2 * row_bytes) + kLoad, 0);
  std::uint8_t *above = row_.data(), *plain = above + row_bytes;
  for (std::int64_t y = 0; y < image.height; ++y) {
    const std::uint8_t* const in = filtered_.data() + y * (row_bytes + 1);
    if (*in > static_cast<std::uint8_t>(RowFilter::kPaeth)) return false;
    std::uint8_t* const out = is_rgb ? image.row(y) : plain;
    unfilter(static_cast<RowFilter>(*in), channels_of(header.type), in + 1, above, out, row_bytes);
    if (is_rgb) {
      above = out;
    } else {
      if (!header.knows_all_colours(out)) return false;
      header.to_rgb(out, image.row(y));
      std::swap(above, plain);
    }
  }
  return true;
}

}  // namespace scaletrain::data
