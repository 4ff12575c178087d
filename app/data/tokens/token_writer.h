// Writes token files NAME-000000.bin, NAME-000001.bin, ..., each of at most tokens_per_file tokens;
// a document may continue in the next file. Adds masks if some tokens carry no loss, and the card
// NAME.tokens.json.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "app/data/files/new_folders.h"
#include "lib/format/tokens/token_card.h"

namespace scaletrain::app {

// Tokens of a document, including the one that ends it.
struct EncodedDocument {
  std::vector<std::uint32_t> tokens;
  std::size_t prompt = 0;         // leading tokens without loss
  std::int64_t prompt_bytes = 0;  // text bytes of the prompt
  std::int64_t text_bytes = 0;    // text bytes of the other tokens
};

struct TokenFiles {
  std::string folder, name, layout;
  std::int64_t token_bytes = 2, tokens_per_file = 0;
  bool overwrite = false;
};

class TokenWriter {
 public:
  // Throws core::UsageError if files of this name exist and `overwrite` is not set.
  explicit TokenWriter(TokenFiles files);
  ~TokenWriter();  // removes unfinished files
  TokenWriter(const TokenWriter&) = delete;
  TokenWriter& operator=(const TokenWriter&) = delete;

  void add(const EncodedDocument& document);

  // Replaces older files by the new ones and writes `card`, completed with layout, counts and
  // files; returns it.
  format::TokenCard finish(format::TokenCard card);

 private:
  std::filesystem::path path_of(std::size_t number) const;
  std::filesystem::path card_path() const;
  std::vector<std::filesystem::path> files_there() const;
  void add_part(const EncodedDocument& document, std::size_t begin, std::size_t end);
  void flush();

  TokenFiles files_;
  NewFolders folders_;
  std::vector<std::uint32_t> held_;
  std::vector<std::uint8_t> without_loss_;  // mask of held_
  std::int64_t held_text_bytes_ = 0;
  std::int64_t documents_ = 0, tokens_ = 0;
  std::vector<format::TokenCard::File> written_;
};

}  // namespace scaletrain::app
