// Files of token numbers for language models: where the tokens stand and how wide they are.
//
//   NAME.bin  nanoGPT's: nothing but numbers; or llm.c's: 1024 bytes of header (256 int32: magic,
//             version, count) before them. Magic 20240520, version 1: 16 bits a token; magic
//             20240801, version 7: 32 bits
//   NAME.npy  a NumPy array of one dimension, little-endian, 16 or 32 bits unsigned
//   NAME.tar  such arrays as members; other members are left alone
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lib/format/tar/tar.h"

namespace scaletrain::format {

// Tokens next to one another in a file, little-endian.
struct TokenRun {
  std::int64_t offset = 0;       // offset of the first token in the file, in bytes
  std::int64_t count = 0;        // tokens
  std::int64_t token_bytes = 0;  // 2 or 4

  bool operator==(const TokenRun&) const = default;
};

// The runs of a file, a .tar's in the order of its members. `raw_bytes`, 2 or 4, is the width of a
// .bin without a header. Throws core::DataError naming file and byte: another extension, a header
// that is damaged or claims more than the file has, a file that ends inside a token.
std::vector<TokenRun> find_tokens(const std::string& name, std::int64_t file_bytes,
                                  std::int64_t raw_bytes, const ReadAt& read);

// True for a .bin without a header: nothing in it says how wide its tokens are. Throws
// core::DataError for a placeholder (lib/core/text/placeholder.h).
bool is_raw_tokens(const std::string& name, std::int64_t file_bytes, const ReadAt& read);

// Windows of `context` tokens and one more in a run, each begun at the last token of the one
// before.
std::int64_t windows_of(const TokenRun& run, std::int64_t context);

// The tokens of a run's bytes.
void widen_tokens(std::span<const std::byte> bytes, std::int64_t token_bytes,
                  std::span<std::int64_t> tokens);

}  // namespace scaletrain::format
