// Token width of a raw .bin, which the file itself does not store. It comes from the card or
// Megatron-LM's .idx beside the file, else from /data/token_bytes, and is compared with the first
// tokens: training on 32-bit tokens read as 16-bit ones would see zeros without an error.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lib/format/tokens/token_card.h"
#include "lib/format/tokens/token_runs.h"

namespace scaletrain::format {

inline constexpr std::int64_t kIndexHeadBytes = 64;  // .idx: magic, version, dtype, two counts

struct WidthSources {
  std::int64_t recipe = 0;          // /data/token_bytes: 2 or 4; 0: left out
  std::int64_t vocab_size = 0;      // vocabulary size of the model; 0: not known
  const TokenCard* card = nullptr;  // card of the file, if it has one
  // Returns the first kIndexHeadBytes of the file at a path, or all of a shorter one; nullopt if
  // there is no file.
  std::function<std::optional<std::string>(const std::string& path)> read_head;
};

// Returns the runs of the token file at `path` (find_tokens), with the token width of a raw .bin
// from `sources`. Throws core::RecipeError if /data/token_bytes is needed and left out, or differs
// from the card or the .idx; core::DataError for a .idx of another kind or a placeholder
// (lib/core/text/placeholder.h), or tokens that are wider; and the errors of find_tokens().
std::vector<TokenRun> find_tokens_of_width(const std::string& path, std::int64_t file_bytes,
                                           const WidthSources& sources, const ReadAt& read);

}  // namespace scaletrain::format
