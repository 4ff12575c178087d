// Tokens as the files of language models hold them (docs/reference/formats/tokens.md): raw, as
// nanoGPT's, or behind llm.c's header.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace scaletrain::format {

inline constexpr std::int64_t kTokenHeaderBytes = 1024;  // header of llm.c: 256 numbers of 32 bits

// The header of llm.c: version 1 for tokens of 16 bits, version 7 (its Llama 3 files) for 32.
std::string llmc_header(std::int64_t count, int token_bytes);

// Little-endian numbers of token_bytes, 2 or 4, which each token fits.
std::string encode_tokens(std::span<const std::uint32_t> tokens, int token_bytes);

}  // namespace scaletrain::format
