#include "lib/format/tokens/token_card.h"

#include <doctest/doctest.h>

#include "tests/format/tar/tar_support.h"

using namespace scaletrain::format;  // NOLINT(google-build-using-namespace)

namespace {

nlohmann::ordered_json small_card() {
  return nlohmann::ordered_json::parse(R"({
    "version": 1, "tokenizer": "bytes", "vocab_size": 257, "end_of_text": 256, "layout": "raw",
    "token_bytes": 2, "documents": 3, "tokens": 30,
    "files": [{"name": "train-000000.bin", "tokens": 20, "text_bytes": 18, "without_loss": 5},
              {"name": "train-000001.bin", "tokens": 10}]})");
}

std::string card_error(const char* pointer, const nlohmann::ordered_json& value) {
  nlohmann::ordered_json card = small_card();
  card[nlohmann::ordered_json::json_pointer(pointer)] = value;
  return message_of([&] { (void)parse_token_card(card.dump(), "t.json"); });
}

}  // namespace

TEST_CASE("a card of tokens is read as it is written") {
  const TokenCard card = parse_token_card(small_card().dump(), "t.json");
  CHECK(card.tokenizer == "bytes");
  CHECK(card.vocab_size == 257);
  CHECK(card.end_of_text == 256);
  CHECK(card.token_bytes == 2);
  CHECK(card.documents == 3);
  CHECK(card.tokens == 30);
  REQUIRE(card.find("train-000000.bin") != nullptr);
  CHECK(card.find("train-000000.bin")->text_bytes == 18);
  CHECK(card.find("train-000000.bin")->without_loss == 5);
  CHECK(!card.find("train-000001.bin")->text_bytes.has_value());  // as older versions wrote it
  CHECK(card.find("val-000000.bin") == nullptr);
  CHECK(token_card_json(card).dump() == small_card().dump());
}

TEST_CASE("a card of tokens that is damaged is refused") {
  const std::string again =
      "\n  run scaletrain data tokenize again, or use another copy of the file";
  CHECK(message_of([] { (void)parse_token_card("{", "t.json"); }) ==
        "t.json: is not JSON at its byte 2" + again);
  CHECK(card_error("/more", 1) == "t.json: /more: is not a key of this format" + again);
  CHECK(card_error("/files/1/more", 1) ==
        "t.json: /files/1/more: is not a key of this format" + again);
  CHECK(card_error("/files/1/tokens", "x") == "t.json: /files/1/tokens: is \"x\"" + again);
  CHECK(card_error("/tokens", -1) == "t.json: /tokens: is -1" + again);
  CHECK(card_error("/version", 2) == "t.json: /version: is 2\n  this program reads version 1");
  CHECK(card_error("/token_bytes", 3) == "t.json: /token_bytes: is 3\n  2 or 4 is allowed here");
  CHECK(card_error("/files", 3) == "t.json: /files: is not a list\n  use another copy of the file");
  CHECK(card_error("/end_of_text", 257) ==
        "t.json: /end_of_text: 257 of 257 tokens\n"
        "  tokens are less than vocab_size, which is at most 4294967296");
}

TEST_CASE("the card lies beside numbered files") {
  CHECK(token_card_path("/a/train-000012.bin") == "/a/train.tokens.json");
  CHECK(token_card_path("s3://b/web-text-7.npy") == "s3://b/web-text.tokens.json");
  CHECK(token_card_path("train-0.bin") == "train.tokens.json");
  for (const char* other : {"train.bin", "train-.bin", "train-x1.bin", "/a-000000/train.bin",
                            "/a-000000/b", "-000000.bin", "/a/-000000.bin", "train-000001", ""}) {
    CHECK_MESSAGE(!token_card_path(other).has_value(), other);
  }
}
