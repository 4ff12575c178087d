// Combines the cards of all files of a token set, and checks that they agree with one another and
// with the files.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "lib/format/tokens/token_card.h"

namespace scaletrain::format {

class TokenCards {
 public:
  // Returns the text of the card at a path; nullopt if there is none.
  using ReadCard = std::function<std::optional<std::string>(const std::string& path)>;

  explicit TokenCards(ReadCard read) : read_(std::move(read)) {}

  // Returns the card of a file, valid as long as this object; nullptr if it has none. Throws
  // core::DataError for a damaged card.
  const TokenCard* card_of(const std::string& file);

  // Adds the next file of the set, with its number of tokens; each card is read once. Throws
  // core::DataError for a damaged card; a card that lacks this file, has another number of tokens,
  // or has a mask that is missing; or another tokenizer than in earlier files.
  void add(const std::string& file, std::int64_t tokens, bool has_mask);

  // Throws core::RecipeError if a card has more tokens than the model's `vocab_size`.
  void check_vocabulary(std::int64_t vocab_size) const;

  // Returns the tokenizer in the set's cards; nullopt if no file has a card.
  std::optional<std::string> tokenizer() const;

  // Returns the token that ends a document; nullopt if a file has no card.
  std::optional<std::int64_t> end_of_text() const;

  // Like end_of_text(), if the token is required: throws core::RecipeError naming the first file
  // without a card.
  std::int64_t needed_end_of_text() const;

  // Returns bytes of text per token; nullopt if unknown for a file, or if a file has a mask, since
  // tokens with a loss may have another average length.
  std::optional<double> bytes_per_token() const;

 private:
  const std::optional<TokenCard>& card_at(const std::string& path);

  ReadCard read_;
  std::map<std::string, std::optional<TokenCard>> cards_;
  std::string first_path_, first_file_;  // path of the first card, and its token file
  std::int64_t tokens_ = 0, text_bytes_ = 0;
  std::optional<std::string> cardless_;  // the first file without a card
  bool text_bytes_known_ = true;
};

}  // namespace scaletrain::format
