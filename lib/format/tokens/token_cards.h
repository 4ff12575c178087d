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
  // The text of the card at a path; nullopt where there is none.
  using ReadCard = std::function<std::optional<std::string>(const std::string& path)>;

  explicit TokenCards(ReadCard read) : read_(std::move(read)) {}

  // The card of a file, which stays valid; nullptr where it has none. Throws core::DataError for a
  // damaged one.
  const TokenCard* card_of(const std::string& file);

  // Takes in the next file of the set, which has so many tokens; each card is read once. Throws
  // core::DataError: a damaged card; one without this file, with another number of tokens
  // for it or with a mask that is not there; another tokenizer than that of the files before.
  void add(const std::string& file, std::int64_t tokens, bool has_mask);

  // Throws core::RecipeError where a card has more tokens than the model's `vocab_size`.
  void check_vocabulary(std::int64_t vocab_size) const;

  // The tokenizer of the set, as its cards name it; nullopt where no file has a card.
  std::optional<std::string> tokenizer() const;

  // The token that ends a document; nullopt where a file has no card.
  std::optional<std::int64_t> end_of_text() const;

  // Like end_of_text(), if the token is required: throws core::RecipeError naming the first file
  // without a card.
  std::int64_t needed_end_of_text() const;

  // Bytes of text over tokens; nullopt where that is not known of every file, or where one has a
  // mask: the tokens that carry a loss may have another length.
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
