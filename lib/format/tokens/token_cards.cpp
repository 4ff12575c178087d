#include "lib/format/tokens/token_cards.h"

#include <fmt/format.h>

#include "lib/core/error.h"
#include "lib/core/printable.h"
#include "lib/core/text/url.h"

namespace scaletrain::format {

const std::optional<TokenCard>& TokenCards::card_at(const std::string& path) {
  const auto [at, is_new] = cards_.try_emplace(path);
  if (is_new) {
    if (const auto text = read_(path)) at->second = parse_token_card(*text, core::shown_path(path));
  }
  return at->second;
}

const TokenCard* TokenCards::card_of(const std::string& file) {
  const std::optional<std::string> path = token_card_path(file);
  if (!path) return nullptr;
  const std::optional<TokenCard>& card = card_at(*path);
  return card ? &*card : nullptr;
}

void TokenCards::add(const std::string& file, std::int64_t tokens, bool has_mask) {
  const std::optional<std::string> path = token_card_path(file);
  tokens_ += tokens;
  if (!path || !card_at(*path)) {
    if (!cardless_) cardless_ = core::shown_path(file);
    text_bytes_known_ = false;
    return;
  }
  const TokenCard& card = *card_at(*path);
  const std::string place = core::shown_path(file), card_name = core::base_name(*path);
  const TokenCard::File* const entry = card.find(core::base_name(file));
  if (entry == nullptr) {
    throw core::DataError(
        place, fmt::format("is not listed in {} beside it", card_name),
        "it belongs to another set: move it away, or tokenize again (--overwrite)");
  }
  if (entry->tokens != tokens) {
    throw core::DataError(
        place, fmt::format("has {} tokens, and {} in {}", tokens, entry->tokens, card_name),
        "one of them is not of this set: use another copy, or tokenize again");
  }
  if (entry->without_loss > 0 && !has_mask) {
    throw core::DataError(place, fmt::format("has no mask beside it, and has one in {}", card_name),
                          "use another copy with its .mask files, or tokenize again: without the "
                          "mask all tokens have a loss");
  }
  if (first_path_.empty()) {
    first_path_ = *path;
    first_file_ = place;
  }
  const TokenCard& first = *card_at(first_path_);
  if (card.tokenizer != first.tokenizer || card.vocab_size != first.vocab_size ||
      card.end_of_text != first.end_of_text) {
    throw core::DataError(place,
                          fmt::format("is of the tokenizer {} with {} tokens, and {} of {} with {}",
                                      core::printable(card.tokenizer), card.vocab_size, first_file_,
                                      core::printable(first.tokenizer), first.vocab_size),
                          "tokenize all files of a set with the same tokenizer");
  }
  text_bytes_known_ = text_bytes_known_ && entry->text_bytes && !has_mask;
  text_bytes_ += entry->text_bytes.value_or(0);
}

void TokenCards::check_vocabulary(std::int64_t vocab_size) const {
  if (first_path_.empty()) return;
  const TokenCard& card = *cards_.at(first_path_);
  if (card.vocab_size <= vocab_size) return;
  throw core::RecipeError(
      "/model/vocab_size",
      fmt::format("{} is less than the {} tokens of {} ({})", vocab_size, card.vocab_size,
                  core::printable(card.tokenizer), core::shown_path(first_path_)),
      fmt::format("use {} or more", card.vocab_size));
}

std::optional<std::string> TokenCards::tokenizer() const {
  if (first_path_.empty()) return std::nullopt;
  return cards_.at(first_path_)->tokenizer;
}

std::optional<std::int64_t> TokenCards::end_of_text() const {
  if (first_path_.empty() || cardless_) return std::nullopt;
  return cards_.at(first_path_)->end_of_text;
}

std::int64_t TokenCards::needed_end_of_text() const {
  if (const auto end = end_of_text()) return *end;
  throw core::RecipeError(
      "/data/document_attention",
      fmt::format("{} has no card beside it, which names the token that ends a document",
                  cardless_.value_or("a set without files")),
      "use files with their NAME.tokens.json, as scaletrain data tokenize writes them, or leave it "
      "out");
}

std::optional<double> TokenCards::bytes_per_token() const {
  if (!text_bytes_known_ || tokens_ == 0 || text_bytes_ == 0) return std::nullopt;
  return static_cast<double>(text_bytes_) / static_cast<double>(tokens_);
}

}  // namespace scaletrain::format
