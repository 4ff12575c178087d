#include "lib/data/image/exif.h"

#include <cstdint>
#include <utility>

namespace scaletrain::data {
namespace {

constexpr std::string_view kHead{"Exif\0\0", 6};
constexpr std::uint64_t kOrientationTag = 0x0112;
constexpr std::uint64_t kShort = 3;  // type of a 16-bit number
constexpr std::size_t kEntryBytes = 12;

// Reads numbers of a TIFF block; positions outside of it read as 0.
struct Tiff {
  std::string_view bytes;
  bool is_little = false;

  std::uint64_t at(std::size_t place, std::size_t size) const {
    if (place > bytes.size() || size > bytes.size() - place) return 0;
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < size; ++i) {
      const std::size_t from = is_little ? size - 1 - i : i;
      value = value << 8 | static_cast<std::uint8_t>(bytes[place + from]);
    }
    return value;
  }
};

// `bytes`: the segment without kHead.
int tiff_orientation(std::string_view bytes) {
  Tiff tiff{bytes};
  tiff.is_little = tiff.bytes.starts_with("II");
  if (tiff.at(2, 2) != 42) return 0;
  const std::size_t directory = tiff.at(4, 4);
  const std::size_t entries = tiff.at(directory, 2);
  for (std::size_t i = 0; i < entries; ++i) {
    const std::size_t entry = directory + 2 + i * kEntryBytes;
    if (entry >= tiff.bytes.size()) return 0;
    if (tiff.at(entry, 2) != kOrientationTag || tiff.at(entry + 2, 2) != kShort) continue;
    const std::uint64_t value = tiff.at(entry + 8, 2);
    return value <= 8 ? static_cast<int>(value) : 0;
  }
  return 0;
}

// PNG chunks have a big-endian length before their name and 4 bytes of checksum at their end. RIFF
// chunks have a little-endian length after their name and start at even offsets.
struct ChunkLayout {
  std::size_t first;  // offset of the first chunk
  bool is_little, name_first, has_sum;
  std::string_view name;  // chunk to look for
};

std::string_view find_chunk(std::string_view file, const ChunkLayout& layout) {
  const Tiff numbers{file, layout.is_little};
  std::size_t place = layout.first;
  while (place + 8 <= file.size()) {
    const std::string_view name = file.substr(layout.name_first ? place : place + 4, 4);
    const std::size_t bytes = numbers.at(layout.name_first ? place + 4 : place, 4);
    if (bytes > file.size() - place - 8) return {};
    if (name == layout.name) return file.substr(place + 8, bytes);
    place += 8 + bytes + (layout.has_sum ? 4 : bytes % 2);
  }
  return {};
}

}  // namespace

int exif_orientation(std::string_view segment) {
  return segment.starts_with(kHead) ? tiff_orientation(segment.substr(kHead.size())) : 0;
}

int png_orientation(std::string_view file) {
  return tiff_orientation(find_chunk(
      file,
      {.first = 8, .is_little = false, .name_first = false, .has_sum = true, .name = "eXIf"}));
}

int webp_orientation(std::string_view file) {
  std::string_view chunk = find_chunk(
      file, {.first = 12, .is_little = true, .name_first = true, .has_sum = false, .name = "EXIF"});
  // Some programs write the header into the chunk too.
  if (chunk.starts_with(kHead)) chunk.remove_prefix(kHead.size());
  return tiff_orientation(chunk);
}

void apply_orientation(int orientation, Image& image, Image& spare) {
  if (orientation <= 1) return;
  // Orientations 5 to 8 are 1 to 4 with rows and columns transposed; the table gives the side that
  // comes first then.
  const bool transposed = orientation >= 5;
  const bool from_right =
      orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  const bool from_below =
      orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  spare.reshape(transposed ? image.height : image.width, transposed ? image.width : image.height);
  for (std::int64_t y = 0; y < spare.height; ++y) {
    std::uint8_t* to = spare.row(y);
    for (std::int64_t x = 0; x < spare.width; ++x, to += kChannels) {
      std::int64_t column = transposed ? y : x, row = transposed ? x : y;
      if (from_right) column = image.width - 1 - column;
      if (from_below) row = image.height - 1 - row;
      const std::uint8_t* const from = image.row(row) + column * kChannels;
      for (std::int64_t c = 0; c < kChannels; ++c) to[c] = from[c];
    }
  }
  std::swap(image, spare);
}

}  // namespace scaletrain::data
