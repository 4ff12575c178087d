#include "lib/exchange/tokenizer_files.h"

#include <doctest/doctest.h>

#include "lib/core/error.h"
#include "lib/format/hashed_file.h"
#include "lib/format/tokens/token_card.h"
#include "tests/exchange/recipe_support.h"
#include "tests/temporary_folder.h"

using namespace scaletrain;            // NOLINT(google-build-using-namespace)
using namespace scaletrain::exchange;  // NOLINT(google-build-using-namespace)

namespace {

constexpr const char* kTokenizer = R"({"added_tokens": [{"id": 7, "content": "<end>"}]})";

recipe::Recipe recipe_in(const test::TemporaryFolder& folder) {
  return test::token_recipe(R"({"name": "gpt2", "vocab_size": 9})", folder.file("a-000000.bin"));
}

void write_card(const test::TemporaryFolder& folder, const std::string& tokenizer) {
  const format::TokenCard card{
      .tokenizer = tokenizer, .vocab_size = 9, .end_of_text = 7, .layout = "raw", .token_bytes = 2};
  folder.write("a.tokens.json", token_card_json(card).dump());
}

std::string with_sum(const test::TemporaryFolder& folder, const std::string& name) {
  return fmt::format("{} {}", name, format::sha256_of(folder.file(name)));
}

}  // namespace

TEST_CASE("a tokenizer.json beside the card goes along, with the token that ends a document") {
  const test::TemporaryFolder folder;
  folder.write("tokenizer.json", kTokenizer);
  write_card(folder, with_sum(folder, "tokenizer.json"));
  const TokenizerFiles found = tokenizer_files(recipe_in(folder), folder.path / "run");
  CHECK(found.missing.empty());
  CHECK(found.end_of_text == 7);
  REQUIRE(found.files.size() == 2);
  CHECK(found.files.at("tokenizer.json") == kTokenizer);
  const auto config = nlohmann::json::parse(found.files.at("tokenizer_config.json"));
  CHECK(config["eos_token"] == "<end>");
  CHECK(config["bos_token"] == "<end>");
  CHECK(config["tokenizer_class"] == "PreTrainedTokenizerFast");
}

TEST_CASE("the card that a run has recorded wins over that of tokens that were written again") {
  const test::TemporaryFolder folder;
  folder.write("tokenizer.json", kTokenizer);
  write_card(folder, with_sum(folder, "tokenizer.json"));
  folder.write("run/cards/train.json", folder.read("a.tokens.json"));
  write_card(folder, "bytes");
  const recipe::Recipe recipe = recipe_in(folder);
  CHECK(tokenizer_files(recipe, folder.path / "run").files.at("tokenizer.json") == kTokenizer);
  CHECK(tokenizer_files(recipe, folder.path / "other").name == "bytes");
  folder.write("tokenizer_config.json", "<html>");
  CHECK_THROWS_WITH_AS(tokenizer_files(recipe, folder.path / "run"),
                       doctest::Contains("tokenizer_config.json: is an HTML page"),
                       core::DataError);
}

TEST_CASE("GPT-2's two files go along as they are") {
  const test::TemporaryFolder folder;
  folder.write("vocab.json", "{}");
  folder.write("merges.txt", "#version");
  write_card(folder, with_sum(folder, "vocab.json"));
  const TokenizerFiles found = tokenizer_files(recipe_in(folder), folder.path / "run");
  CHECK(found.files ==
        std::map<std::string, std::string>{{"merges.txt", "#version"}, {"vocab.json", "{}"}});
}

TEST_CASE("where no file is the card's, the export says why it has no tokenizer") {
  const test::TemporaryFolder folder;
  const TokenizerFiles cardless = tokenizer_files(recipe_in(folder), folder.path / "run");
  CHECK(cardless.missing.ends_with("a-000000.bin has no card on this machine"));
  CHECK(!cardless.end_of_text);
  recipe::Recipe imported = recipe_in(folder);
  imported.data.train.tokens = {folder.file("imported-without-data-000000.bin")};
  CHECK(tokenizer_files(imported, folder.path / "run").missing ==
        "the weights were imported without one");
  write_card(folder, "bytes");
  const TokenizerFiles bytes = tokenizer_files(recipe_in(folder), folder.path / "run");
  CHECK(bytes.missing == "that of the run is its bytes, which have no file");
  CHECK(bytes.end_of_text == 7);
  folder.write("tokenizer.json", kTokenizer);
  write_card(folder, with_sum(folder, "tokenizer.json"));
  folder.write("tokenizer.json", "{}");  // another one by now
  CHECK(tokenizer_files(recipe_in(folder), folder.path / "run").missing.find("with its checksum") !=
        std::string::npos);
  folder.write("pieces.model", "model");
  write_card(folder, with_sum(folder, "pieces.model"));
  const TokenizerFiles pieces = tokenizer_files(recipe_in(folder), folder.path / "run");
  CHECK(pieces.missing.ends_with("pieces.model is not one of transformers' files"));
  CHECK(pieces.files.empty());
}
