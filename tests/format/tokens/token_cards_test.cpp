#include "lib/format/tokens/token_cards.h"

#include <doctest/doctest.h>

#include <map>

#include "tests/format/tar/tar_support.h"

using namespace scaletrain::format;  // NOLINT(google-build-using-namespace)

namespace {

std::string card_text(const std::string& name, const std::string& tokenizer,
                      std::int64_t vocab_size, std::int64_t without_loss = 0) {
  TokenCard card{.tokenizer = tokenizer,
                 .vocab_size = vocab_size,
                 .end_of_text = 256,
                 .layout = "raw",
                 .token_bytes = 2};
  card.files = {{name + "-000000.bin", 100, 80, without_loss}, {name + "-000001.bin", 60, 40, 0}};
  return token_card_json(card).dump();
}

// Cards by their paths.
TokenCards cards_of(std::map<std::string, std::string> texts) {
  return TokenCards([texts = std::move(texts)](const std::string& path) {
    const auto found = texts.find(path);
    return found == texts.end() ? std::nullopt : std::optional(found->second);
  });
}

}  // namespace

TEST_CASE("cards that agree give the end of documents and the bytes of a token") {
  TokenCards cards = cards_of({{"/d/a.tokens.json", card_text("a", "bytes", 257)},
                               {"/d/b.tokens.json", card_text("b", "bytes", 257)}});
  CHECK(!cards.end_of_text().has_value());
  cards.add("/d/a-000000.bin", 100, false);
  cards.add("/d/a-000001.bin", 60, false);
  cards.add("/d/b-000001.bin", 60, false);
  CHECK(cards.end_of_text() == 256);
  CHECK(cards.bytes_per_token() == doctest::Approx((80 + 40 + 40) / 220.0));
  CHECK_NOTHROW(cards.check_vocabulary(257));
  CHECK_THROWS_WITH_AS(cards.check_vocabulary(256),
                       "/model/vocab_size: 256 is less than the 257 tokens of bytes "
                       "(/d/a.tokens.json)\n  use 257 or more",
                       scaletrain::core::RecipeError);
}

TEST_CASE("a file without a card, or with a mask, leaves things unknown") {
  const std::map<std::string, std::string> texts{
      {"/d/a.tokens.json", card_text("a", "bytes", 257)}};
  TokenCards some = cards_of(texts);
  some.add("/d/a-000000.bin", 100, false);
  some.add("/d/wiki.bin", 50, false);
  CHECK(!some.end_of_text().has_value());
  CHECK(!some.bytes_per_token().has_value());
  CHECK_THROWS_AS(some.check_vocabulary(100), scaletrain::core::RecipeError);
  TokenCards masked = cards_of(texts);
  masked.add("/d/a-000000.bin", 100, true);
  CHECK(masked.end_of_text() == 256);
  CHECK(!masked.bytes_per_token().has_value());
  TokenCards none = cards_of({});
  none.add("/d/a-000000.bin", 100, false);
  CHECK_NOTHROW(none.check_vocabulary(1));
  CHECK(!none.bytes_per_token().has_value());
}

TEST_CASE("a card that does not fit its files, or another card, is refused") {
  const std::map<std::string, std::string> texts{
      {"/d/a.tokens.json", card_text("a", "bytes", 257)},
      {"/d/b.tokens.json", card_text("b", "other.json 12ab", 300)},
      {"/d/c.tokens.json", card_text("c", "bytes", 257, 7)}};
  const auto error_of_adding = [&](const std::string& file, std::int64_t tokens) {
    TokenCards cards = cards_of(texts);
    cards.add("/d/a-000000.bin", 100, false);
    return message_of([&] { cards.add(file, tokens, false); });
  };
  CHECK(error_of_adding("/d/a-000002.bin", 1) ==
        "/d/a-000002.bin: is not listed in a.tokens.json beside it\n"
        "  it belongs to another set: move it away, or tokenize again (--overwrite)");
  CHECK(error_of_adding("/d/a-000001.bin", 59) ==
        "/d/a-000001.bin: has 59 tokens, and 60 in a.tokens.json\n"
        "  one of them is not of this set: use another copy, or tokenize again");
  CHECK(error_of_adding("/d/b-000000.bin", 100) ==
        "/d/b-000000.bin: is of the tokenizer other.json 12ab with 300 tokens, and "
        "/d/a-000000.bin of bytes with 257\n"
        "  tokenize all files of a set with the same tokenizer");
  CHECK(error_of_adding("/d/c-000000.bin", 100) ==
        "/d/c-000000.bin: has no mask beside it, and has one in c.tokens.json\n"
        "  use another copy with its .mask files, or tokenize again: without the mask all tokens "
        "have a loss");
}
