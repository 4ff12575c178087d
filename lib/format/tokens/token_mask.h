// Loss mask of a token file, for tokens without loss: SHARD.mask beside SHARD
// (docs/reference/formats/tokens.md).
//
// The header has 16 bytes: "stmask1" with a line feed, and the number of tokens (64 bits,
// little-endian). A bit for each token follows, lowest bit of a byte first: 1 for a token without
// loss.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "lib/format/tar/tar.h"
#include "lib/format/tokens/token_runs.h"

namespace scaletrain::format {

inline constexpr std::int64_t kMaskHeaderBytes = 16;

// Returns the path of a token file's mask: beside it, with ".mask" added to its name.
std::string token_mask_path(std::string_view token_file);

// Returns the file's bytes; without_loss[i] is 1 if token i has no loss, else 0.
std::string encode_mask(std::span<const std::uint8_t> without_loss);

// Throws core::DataError naming file and byte if `name` of `file_bytes` bytes is not a mask of
// `tokens` tokens: another header, number or size.
void check_mask(const std::string& name, std::int64_t file_bytes, std::int64_t tokens,
                const ReadAt& read);

// Sets out[i] to 1 if token `first` + i has no loss, else to 0.
void read_mask(std::int64_t first, std::span<std::uint8_t> out, const ReadAt& read);

// True if at least one target has a loss in the windows of `context` tokens of `runs`. Stops at the
// first one.
bool any_target(std::span<const TokenRun> runs, std::int64_t context, const ReadAt& read);

// Error text and advice for a set whose masks leave no target at all.
inline constexpr const char* kNoTargets = "no token has a loss: the masks exclude all of them";
inline constexpr const char* kNoTargetsRemedy =
    "tokenize again, with the text to train on in --text-field, or delete the .mask "
    "files "
    "and the card: all tokens count then";

}  // namespace scaletrain::format
