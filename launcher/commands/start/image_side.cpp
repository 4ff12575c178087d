#include "launcher/commands/start/image_side.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "lib/format/rgb8.h"

namespace scaletrain::launcher {
namespace {

constexpr std::string_view kPng = "\x89PNG\r\n\x1a\n";
constexpr std::string_view kJpeg = "\xff\xd8";

std::int64_t byte_at(std::string_view head, std::size_t at) {
  return static_cast<unsigned char>(head[at]);
}

std::int64_t big_endian(std::string_view head, std::size_t at, std::size_t count) {
  std::int64_t value = 0;
  for (std::size_t i = 0; i < count; ++i) value = value * 256 + byte_at(head, at + i);
  return value;
}

// Follows the segments up to the frame header (SOF0 to SOF15 without DHT, JPG and DAC).
std::optional<std::int64_t> side_of_jpeg(std::string_view head) {
  constexpr std::size_t kFrameBytes = 9;
  for (std::size_t at = kJpeg.size(); at + kFrameBytes <= head.size();) {
    if (byte_at(head, at) != 0xff) return std::nullopt;
    const std::int64_t marker = byte_at(head, at + 1);
    const bool is_frame =
        marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc;
    if (is_frame) return std::min(big_endian(head, at + 5, 2), big_endian(head, at + 7, 2));
    at += 2 + static_cast<std::size_t>(big_endian(head, at + 2, 2));
  }
  return std::nullopt;
}

// Width and height follow the magic, in 32 bits each, little-endian.
std::optional<std::int64_t> side_of_rgb8(std::string_view head) {
  constexpr std::int64_t kMostSide = 1 << 16;
  const auto at = format::kRgb8Magic.size();
  std::int64_t first = 0, second = 0;
  for (std::size_t i = 4; i-- > 0;) {
    first = first * 256 + byte_at(head, at + i);
    second = second * 256 + byte_at(head, at + 4 + i);
  }
  if (first < 1 || second < 1 || std::max(first, second) > kMostSide) return std::nullopt;
  return std::min(first, second);
}

}  // namespace

std::optional<std::int64_t> shorter_side(std::string_view head) {
  constexpr std::size_t kPngBytes = 24;
  if (head.starts_with(kPng) && head.size() >= kPngBytes) {
    return std::min(big_endian(head, 16, 4), big_endian(head, 20, 4));
  }
  if (head.starts_with(kJpeg)) return side_of_jpeg(head);
  if (head.starts_with(format::kRgb8Magic) && head.size() >= format::kRgb8HeaderBytes) {
    return side_of_rgb8(head);
  }
  return std::nullopt;
}

}  // namespace scaletrain::launcher
