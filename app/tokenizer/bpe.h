// Byte-pair encoding (BPE) of one piece of text: repeatedly merges the neighbouring pair with the
// lowest rank, leftmost first (Sennrich et al., "Neural Machine Translation of Rare Words with
// Subword Units", 2016, section 3.2).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace scaletrain::app {

using Vocabulary = std::unordered_map<std::string, std::uint32_t>;
using Merges = std::vector<std::pair<std::string, std::string>>;  // in order of rank

struct BpeOptions {
  bool byte_level = false;     // merges start from bytes; otherwise from characters
  bool byte_fallback = false;  // an unknown character becomes tokens "<0x00>" to "<0xFF>"
  bool whole_words = false;    // a piece that is a token is not merged from parts
  std::optional<std::uint32_t>
      unknown{};              // token for unknown text; without it such text is dropped
  bool fuse_unknown = false;  // one token for consecutive unknown characters
};

class Bpe {
 public:
  // `vocabulary` and `merges` are text, also for bytes. Throws core::DataError naming `place` for a
  // merge of unknown tokens or a byte without a token.
  Bpe(Vocabulary vocabulary, const Merges& merges, const BpeOptions& options,
      const std::string& place);

  // Appends the tokens of `piece`, UTF-8; any thread.
  void encode(std::string_view piece, std::vector<std::uint32_t>& tokens) const;

 private:
  struct Merge {
    std::uint32_t rank, token;
  };
  std::vector<std::uint32_t> first_symbols(std::string_view piece) const;
  void add_character(std::string_view character, bool& was_unknown,
                     std::vector<std::uint32_t>& symbols) const;

  Vocabulary vocabulary_;
  BpeOptions options_;
  std::unordered_map<std::uint64_t, Merge> merges_;  // key: left << 32 | right
  std::vector<std::uint32_t> bytes_;                 // token of each byte, if all have one
};

}  // namespace scaletrain::app
