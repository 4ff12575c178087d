#include "lib/format/tokens/token_mask.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <vector>

#include "lib/core/error.h"
#include "lib/core/text/placeholder.h"

namespace scaletrain::format {
namespace {

static_assert(std::endian::native == std::endian::little, "the count is little-endian");

constexpr std::string_view kMaskMagic = "stmask1\n";
constexpr std::int64_t kBits = 8;

std::int64_t bytes_of_bits(std::int64_t bits) { return (bits + kBits - 1) / kBits; }

[[noreturn]] void fail_mask(const std::string& name, std::int64_t offset, const std::string& found,
                            const std::string& remedy) {
  throw core::DataError(fmt::format("{}: byte {}", name, offset), found, remedy);
}

}  // namespace

std::string token_mask_path(std::string_view token_file) {
  return std::string(token_file) + ".mask";
}

std::string encode_mask(std::span<const std::uint8_t> without_loss) {
  const auto count = static_cast<std::int64_t>(without_loss.size());
  std::string bytes(static_cast<std::size_t>(kMaskHeaderBytes + bytes_of_bits(count)), '\0');
  std::memcpy(bytes.data(), kMaskMagic.data(), kMaskMagic.size());
  std::memcpy(bytes.data() + kMaskMagic.size(), &count, sizeof(count));
  for (std::size_t i = 0; i < without_loss.size(); ++i) {
    char& byte = bytes[static_cast<std::size_t>(kMaskHeaderBytes) + i / kBits];
    if (without_loss[i] != 0) byte = static_cast<char>(byte | (1 << (i % kBits)));
  }
  return bytes;
}

void check_mask(const std::string& name, std::int64_t file_bytes, std::int64_t tokens,
                const ReadAt& read) {
  const char* const remedy = "write it again for this file, or delete it: all tokens count then";
  std::array<char, kMaskHeaderBytes> header{};
  if (file_bytes >= kMaskHeaderBytes) read(0, std::as_writable_bytes(std::span(header)));
  if (std::string_view(header.data(), kMaskMagic.size()) != kMaskMagic) {
    std::string start(std::min(static_cast<std::size_t>(file_bytes), core::kPlaceholderBytes),
                      '\0');
    if (file_bytes > 0) read(0, std::as_writable_bytes(std::span(start)));
    core::refuse_placeholder(name, start);
    fail_mask(name, 0, "is not a token mask", remedy);
  }
  std::int64_t count = 0;
  std::memcpy(&count, header.data() + kMaskMagic.size(), sizeof(count));
  if (count != tokens) {
    fail_mask(name, static_cast<std::int64_t>(kMaskMagic.size()),
              fmt::format("is for {} tokens, and the file beside it has {}", count, tokens),
              remedy);
  }
  const std::int64_t expected = kMaskHeaderBytes + bytes_of_bits(tokens);
  if (file_bytes != expected) {
    fail_mask(name, std::min(file_bytes, expected),
              fmt::format("has {} bytes, and {} tokens take {}", file_bytes, tokens, expected),
              remedy);
  }
}

void read_mask(std::int64_t first, std::span<std::uint8_t> out, const ReadAt& read) {
  if (out.empty()) return;
  const std::int64_t begin = first / kBits;
  const std::int64_t end = bytes_of_bits(first + static_cast<std::int64_t>(out.size()));
  std::vector<unsigned char> bytes(static_cast<std::size_t>(end - begin));
  read(kMaskHeaderBytes + begin, std::as_writable_bytes(std::span(bytes)));
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto bit = static_cast<std::size_t>(first - begin * kBits) + i;
    out[i] = bytes[bit / kBits] >> (bit % kBits) & 1;
  }
}

bool any_target(std::span<const TokenRun> runs, std::int64_t context, const ReadAt& read) {
  constexpr std::int64_t kTokensPerRead = 1 << 20;
  std::vector<std::uint8_t> without_loss;
  std::int64_t first = 0;  // index of the run's first token
  for (const TokenRun& run : runs) {
    const std::int64_t end = first + 1 + windows_of(run, context) * context;
    for (std::int64_t at = first + 1; at < end; at += kTokensPerRead) {
      without_loss.resize(static_cast<std::size_t>(std::min(kTokensPerRead, end - at)));
      read_mask(at, without_loss, read);
      if (std::find(without_loss.begin(), without_loss.end(), 0) != without_loss.end()) return true;
    }
    first += run.count;
  }
  return false;
}

}  // namespace scaletrain::format
