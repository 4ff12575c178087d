// Writes token files (docs/reference/formats/tokens.md): raw, as for nanoGPT, or with llm.c's
// header.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace scaletrain::format {

inline constexpr std::int64_t kTokenHeaderBytes = 1024;  // header of llm.c: 256 numbers of 32 bits

// Returns llm.c's header: version 1 for 16-bit tokens, version 7 (its Llama 3 files) for 32-bit
// tokens.
std::string llmc_header(std::int64_t count, int token_bytes);

// Returns the tokens as little-endian integers of token_bytes, 2 or 4, into which each token must
// fit.
std::string encode_tokens(std::span<const std::uint32_t> tokens, int token_bytes);

}  // namespace scaletrain::format
