#include "lib/format/tokens/token_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

#include "lib/core/error.h"
#include "lib/core/text/placeholder.h"

namespace scaletrain::format {
namespace {

constexpr std::int64_t kBinHeaderBytes = 1024;
constexpr std::int64_t kMaxNpyHeaderBytes = 64 << 10;

[[noreturn]] void fail_tokens(const std::string& name, std::int64_t offset,
                              const std::string& found, const std::string& remedy) {
  throw core::DataError(fmt::format("{}: byte {}", name, offset), found, remedy);
}

struct BinKind {
  std::uint32_t magic, version;
  std::int64_t token_bytes;
};
constexpr std::array<BinKind, 2> kBinKinds{{{20240520, 1, 2}, {20240801, 7, 4}}};

using BinHeader = std::array<std::uint32_t, 3>;  // magic, version, count

// Zeros for a file that is too short for a header.
BinHeader read_bin_header(std::int64_t file_bytes, const ReadAt& read) {
  BinHeader header{};
  if (file_bytes >= kBinHeaderBytes) read(0, std::as_writable_bytes(std::span(header)));
  return header;
}

void check_placeholder(const std::string& name, std::int64_t file_bytes, const ReadAt& read) {
  constexpr std::int64_t kStart{core::kPlaceholderBytes};
  if (file_bytes == 0) return;
  std::string start(static_cast<std::size_t>(std::min(file_bytes, kStart)), '\0');
  read(0, std::as_writable_bytes(std::span(start)));
  core::refuse_placeholder(name, start);
}

TokenRun find_in_bin(const std::string& name, std::int64_t file_bytes, std::int64_t raw_bytes,
                     const ReadAt& read) {
  const BinHeader header = read_bin_header(file_bytes, read);
  for (const BinKind& kind : kBinKinds) {
    if (header[0] != kind.magic) continue;
    if (header[1] != kind.version) {
      fail_tokens(name, 4, fmt::format("version {} of the header", header[1]),
                  fmt::format("this program reads version {}", kind.version));
    }
    const std::int64_t bytes = header[2] * kind.token_bytes;
    if (kBinHeaderBytes + bytes != file_bytes) {
      fail_tokens(name, 8,
                  fmt::format("the header says {} tokens, {} bytes, and {} follow it", header[2],
                              bytes, file_bytes - kBinHeaderBytes),
                  "the file is truncated, or was changed: write it again");
    }
    return {kBinHeaderBytes, header[2], kind.token_bytes};
  }
  if (file_bytes % raw_bytes != 0) {
    fail_tokens(
        name, file_bytes / raw_bytes * raw_bytes, "ends inside a token",
        fmt::format("a token is {} bytes: the file is truncated, or of another type", raw_bytes));
  }
  return {0, file_bytes / raw_bytes, raw_bytes};
}

// Returns the value of `key` in the header's dictionary, up to the next comma outside of brackets.
std::string_view npy_value(std::string_view header, std::string_view key) {
  const std::size_t found = header.find(key);
  if (found == std::string_view::npos) return {};
  std::string_view rest = header.substr(found + key.size());
  rest.remove_prefix(std::min(rest.find_first_not_of(": "), rest.size()));
  return rest.substr(0, rest.starts_with('(') ? rest.find(')') + 1 : rest.find(','));
}

// "(12,)" to 12; -1 for anything else.
std::int64_t npy_length(std::string_view shape) {
  std::int64_t count = -1;
  if (!shape.starts_with('(')) return -1;
  const char* const end = shape.data() + shape.size();
  const auto [stop, error] = std::from_chars(shape.data() + 1, end, count);
  return error == std::errc() && std::string_view(stop, end) == ",)" ? count : -1;
}

// The array of `bytes` bytes that begins at `begin`.
TokenRun find_in_npy(const std::string& name, std::int64_t begin, std::int64_t bytes,
                     const ReadAt& read) {
  const char* const remedy =
      "write an array of one dimension of uint16 or uint32: numpy.save(file, tokens)";
  constexpr std::string_view kNumpyMagic = "\x93NUMPY";
  std::array<char, 12> start{};
  if (bytes < static_cast<std::int64_t>(start.size())) {
    fail_tokens(name, begin, "is too short for a NumPy array", remedy);
  }
  read(begin, std::as_writable_bytes(std::span(start)));
  const auto byte = [&start](std::size_t i) {
    return static_cast<std::int64_t>(static_cast<unsigned char>(start.at(i)));
  };
  const std::int64_t version = byte(6);
  if (std::string_view(start.data(), kNumpyMagic.size()) != kNumpyMagic || version < 1 ||
      version > 3) {
    if (begin == 0) check_placeholder(name, bytes, read);
    fail_tokens(name, begin, "is not a NumPy array", remedy);
  }
  const std::int64_t prefix = version == 1 ? 10 : 12;
  const std::int64_t length =
      byte(8) + (byte(9) << 8) + (version == 1 ? 0 : (byte(10) << 16) + (byte(11) << 24));
  if (length > std::min(kMaxNpyHeaderBytes, bytes - prefix)) {
    fail_tokens(name, begin + 8, fmt::format("a header of {} bytes", length), remedy);
  }
  std::string header(static_cast<std::size_t>(length), '\0');
  read(begin + prefix, std::as_writable_bytes(std::span(header)));
  const std::string_view type = npy_value(header, "'descr'");
  const std::int64_t count = npy_length(npy_value(header, "'shape'"));
  const std::int64_t token_bytes = type == "'<u2'" ? 2 : type == "'<u4'" ? 4 : 0;
  if (token_bytes == 0 || count < 0) {
    fail_tokens(name, begin + prefix,
                fmt::format("an array of type {} and shape {}", shown_name(type),
                            shown_name(npy_value(header, "'shape'"))),
                remedy);
  }
  if ((bytes - prefix - length) / token_bytes != count ||
      (bytes - prefix - length) % token_bytes != 0) {
    fail_tokens(name, begin + prefix,
                fmt::format("the header says {} tokens of {} bytes, and {} bytes follow it", count,
                            token_bytes, bytes - prefix - length),
                "the array is truncated, or was changed: write it again");
  }
  return {begin + prefix + length, count, token_bytes};
}

}  // namespace

bool is_raw_tokens(const std::string& name, std::int64_t file_bytes, const ReadAt& read) {
  if (!name.ends_with(".bin")) return false;
  check_placeholder(name, file_bytes, read);
  const std::uint32_t magic = read_bin_header(file_bytes, read)[0];
  return std::none_of(kBinKinds.begin(), kBinKinds.end(),
                      [magic](const BinKind& kind) { return kind.magic == magic; });
}

std::vector<TokenRun> find_tokens(const std::string& name, std::int64_t file_bytes,
                                  std::int64_t raw_bytes, const ReadAt& read) {
  if (name.ends_with(".bin")) return {find_in_bin(name, file_bytes, raw_bytes, read)};
  if (name.ends_with(".npy")) return {find_in_npy(name, 0, file_bytes, read)};
  if (!name.ends_with(".tar")) {
    throw core::DataError(name, "is neither .bin nor .npy nor .tar",
                          "use token files of one of these forms (docs/reference/data.md)");
  }
  std::vector<TokenRun> runs;
  TarReader reader(name, file_bytes, read);
  while (const auto member = reader.next()) {
    if (!member->regular || !member->path.ends_with(".npy")) continue;
    runs.push_back(find_in_npy(name, member->data, member->bytes, read));
  }
  return runs;
}

std::int64_t windows_of(const TokenRun& run, std::int64_t context) {
  return std::max<std::int64_t>(run.count - 1, 0) / context;
}

void widen_tokens(std::span<const std::byte> bytes, std::int64_t token_bytes,
                  std::span<std::int64_t> tokens) {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    std::uint32_t token = 0;  // little-endian, as the machine is (lib/format/tar/shard_index.cpp)
    std::memcpy(&token, bytes.data() + i * static_cast<std::size_t>(token_bytes),
                static_cast<std::size_t>(token_bytes));
    tokens[i] = token;
  }
}

}  // namespace scaletrain::format
