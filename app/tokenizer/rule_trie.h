// The normalization rules of a SentencePiece model: its `precompiled_charsmap`.
//
//   4 bytes    bytes of the trie, little-endian
//   trie       units of 4 bytes of a Darts-clone double array; its values are offsets into
//   strings    the normalized texts, each with a zero byte at its end
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace scaletrain::app {

// Checks the compiled normalization rules of a SentencePiece model. Returns the problem if a search
// could leave the trie, the strings or the library's buffer of 32 results, or if a text could
// become more than 256 times longer; nullopt for valid rules, including empty ones.
std::optional<std::string> damage_of_rules(std::string_view rules);

}  // namespace scaletrain::app
