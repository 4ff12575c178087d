#include "lib/format/tokens/token_file.h"

#include <array>
#include <bit>
#include <cstring>

namespace scaletrain::format {
namespace {

static_assert(std::endian::native == std::endian::little, "tokens are little-endian");

// llm.c: dev/data/data_common.py, write_datafile.
constexpr std::int32_t kMagic16 = 20240520, kVersion16 = 1;
constexpr std::int32_t kMagic32 = 20240801, kVersion32 = 7;

}  // namespace

std::string llmc_header(std::int64_t count, int token_bytes) {
  std::array<std::int32_t, kTokenHeaderBytes / sizeof(std::int32_t)> numbers{};
  numbers[0] = token_bytes == 2 ? kMagic16 : kMagic32;
  numbers[1] = token_bytes == 2 ? kVersion16 : kVersion32;
  numbers[2] = static_cast<std::int32_t>(count);
  std::string header(static_cast<std::size_t>(kTokenHeaderBytes), '\0');
  std::memcpy(header.data(), numbers.data(), header.size());
  return header;
}

std::string encode_tokens(std::span<const std::uint32_t> tokens, int token_bytes) {
  const auto width = static_cast<std::size_t>(token_bytes);
  std::string bytes(tokens.size() * width, '\0');
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    std::memcpy(bytes.data() + i * width, &tokens[i], width);
  }
  return bytes;
}

}  // namespace scaletrain::format
