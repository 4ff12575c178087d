// NAME.tokens.json: describes the token files NAME-000000.bin and following beside it
// (docs/reference/formats/tokens.md).
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace scaletrain::format {

inline constexpr std::int64_t kMaxTokenCardBytes = 64 << 20;

struct TokenCard {
  struct File {
    std::string name;  // without folder
    std::int64_t tokens = 0;
    std::optional<std::int64_t> text_bytes;  // size of the text that was tokenized
    std::int64_t without_loss = 0;           // tokens that the mask excludes; 0: no mask
  };

  std::string tokenizer;         // "bytes", or the file's name and SHA-256
  std::int64_t vocab_size = 0;   // all tokens are less than this
  std::int64_t end_of_text = 0;  // the token that ends a document
  std::string layout = {};       // "raw", "llmc"
  std::int64_t token_bytes = 0;  // 2 or 4
  std::int64_t documents = 0, tokens = 0;
  std::vector<File> files = {};

  // Returns the entry of a file; nullptr if the card does not list it.
  const File* find(std::string_view name) const;
};

// Returns the path of a token file's card: FOLDER/NAME.tokens.json for FOLDER/NAME-000012.bin;
// nullopt for a name without a number.
std::optional<std::string> token_card_path(std::string_view token_file);

// Parses a card. Throws core::DataError naming `place` if it is not JSON, or if a key is missing,
// unknown or out of range.
TokenCard parse_token_card(std::string_view text, const std::string& place);

// Returns the card as JSON for the file.
nlohmann::ordered_json token_card_json(const TokenCard& card);

}  // namespace scaletrain::format
