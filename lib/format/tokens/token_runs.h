// Token files of language models: the positions and the width of the tokens.
//
//   NAME.bin  nanoGPT: only tokens; or llm.c: 1024 bytes of header (256 int32: magic, version,
//             count) before them. Magic 20240520, version 1: 16-bit tokens; magic 20240801,
//             version 7: 32-bit tokens
//   NAME.npy  a one-dimensional little-endian NumPy array, 16 or 32 bits unsigned
//   NAME.tar  such arrays as members; other members are ignored
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lib/format/tar/tar.h"

namespace scaletrain::format {

// A contiguous run of little-endian tokens in a file.
struct TokenRun {
  std::int64_t offset = 0;       // offset of the first token in the file, in bytes
  std::int64_t count = 0;        // tokens
  std::int64_t token_bytes = 0;  // 2 or 4

  bool operator==(const TokenRun&) const = default;
};

// Returns the runs of a file; for a .tar in the order of its members. `raw_bytes`, 2 or 4, is the
// token width of a .bin without a header. Throws core::DataError naming file and byte for another
// extension, a damaged header, a header that claims more than the file has, or a file that ends
// inside a token.
std::vector<TokenRun> find_tokens(const std::string& name, std::int64_t file_bytes,
                                  std::int64_t raw_bytes, const ReadAt& read);

// True for a .bin without a header, which does not store its token width. Throws core::DataError
// for a placeholder (lib/core/text/placeholder.h).
bool is_raw_tokens(const std::string& name, std::int64_t file_bytes, const ReadAt& read);

// Returns the number of windows in a run: `context` tokens and one more, each starting at the last
// token of the previous one.
std::int64_t windows_of(const TokenRun& run, std::int64_t context);

// Converts a run's bytes to 64-bit tokens.
void widen_tokens(std::span<const std::byte> bytes, std::int64_t token_bytes,
                  std::span<std::int64_t> tokens);

}  // namespace scaletrain::format
