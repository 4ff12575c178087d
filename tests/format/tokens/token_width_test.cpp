#include "lib/format/tokens/token_width.h"

#include <doctest/doctest.h>

#include <cstring>
#include <numeric>
#include <vector>

#include "lib/core/error.h"
#include "lib/format/tokens/token_file.h"

namespace scaletrain::format {
namespace {

struct Case {
  std::string bytes;
  std::int64_t vocab_size = 300, recipe = 0;
  std::optional<std::int64_t> card = std::nullopt;
  std::string index = {};  // of Megatron-LM, beside it
};

std::string tokens_of(int bytes, std::uint32_t first = 0, std::size_t count = 40) {
  std::vector<std::uint32_t> tokens(count);
  std::iota(tokens.begin(), tokens.end(), first);
  return encode_tokens(tokens, bytes);
}

std::string megatron(char dtype) {
  return std::string("MMIDIDX\0\0\1\0\0\0\0\0\0\0", 17) + dtype + std::string(16, '\0');
}

// The width that the tokens of t-000000.bin are read with, or the error.
std::string width_of(const Case& given) {
  const ReadAt read = [&](std::int64_t offset, std::span<std::byte> out) {
    REQUIRE(offset + std::ssize(out) <= std::ssize(given.bytes));
    if (!out.empty()) std::memcpy(out.data(), given.bytes.data() + offset, out.size());
  };
  const TokenCard card{.tokenizer = "bytes", .token_bytes = given.card.value_or(0)};
  const WidthSources sources{
      .recipe = given.recipe,
      .vocab_size = given.vocab_size,
      .card = given.card ? &card : nullptr,
      .read_head = [&](const std::string& path) -> std::optional<std::string> {
        CHECK(path == "/d/t-000000.idx");
        return given.index.empty() ? std::nullopt : std::optional(given.index);
      }};
  try {
    const auto runs =
        find_tokens_of_width("/d/t-000000.bin", std::ssize(given.bytes), sources, read);
    return std::to_string(runs.front().token_bytes);
  } catch (const core::Error& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("the width of a raw .bin is the card's, the index's, the recipe's or the vocabulary's") {
  const std::string narrow = tokens_of(2), wide = tokens_of(4);
  CHECK(width_of({.bytes = narrow}) == "2");
  CHECK(width_of({.bytes = narrow, .vocab_size = 65536}) == "2");
  CHECK(width_of({.bytes = narrow, .vocab_size = 0}) == "2");
  CHECK(width_of({.bytes = wide, .recipe = 4}) == "4");
  CHECK(width_of({.bytes = wide, .card = 4}) == "4");
  CHECK(width_of({.bytes = wide, .recipe = 4, .card = 4}) == "4");
  CHECK(width_of({.bytes = wide, .vocab_size = 128256, .index = megatron(4)}) == "4");
  CHECK(width_of({.bytes = narrow, .vocab_size = 128256, .index = megatron(8)}) == "2");
  CHECK(width_of({.bytes = narrow, .index = "the index of something else"}) == "2");
  CHECK(width_of({.bytes = llmc_header(40, 4) + wide, .vocab_size = 128256}) == "4");
}

TEST_CASE("a width that nothing says is asked for where both are possible") {
  CHECK(width_of({.bytes = tokens_of(2), .vocab_size = 65537}) ==
        "/data/token_bytes: is left out, and neither a card nor an index beside /d/t-000000.bin "
        "says whether its tokens have 16 or 32 bits; /model/vocab_size is 65537\n"
        "  set 4 for tokens of 32 bits, 2 for tokens of 16 bits");
  CHECK(width_of({.bytes = tokens_of(2), .vocab_size = 65537, .recipe = 2}) == "2");
}

TEST_CASE("a recipe that contradicts the card or the index is wrong") {
  CHECK(width_of({.bytes = tokens_of(2), .recipe = 4, .card = 2}) ==
        "/data/token_bytes: is 4, and /d/t-000000.bin has tokens of 2 bytes, as t.tokens.json "
        "says\n  leave it out");
  CHECK(width_of({.bytes = tokens_of(4), .recipe = 2, .index = megatron(4)}) ==
        "/data/token_bytes: is 2, and /d/t-000000.bin has tokens of 4 bytes, as t-000000.idx "
        "says\n  leave it out");
}

TEST_CASE("tokens that are wider than they are read are refused by their zeros") {
  const std::string hint = "\n  set \"token_bytes\": 4 in \"data\"";
  const std::string wider =
      "/d/t-000000.bin: has tokens of 32 bits, and is read as tokens of 16 bits: 1 of 2 would be "
      "padding" +
      hint;
  CHECK(width_of({.bytes = tokens_of(4)}) == wider);
  CHECK(width_of({.bytes = tokens_of(4), .recipe = 2}) == wider);
  // Above 65535 the upper halves are 1, which the model has as a token too.
  CHECK(width_of({.bytes = tokens_of(4, 70000), .vocab_size = 128256, .recipe = 2}) == wider);
  std::string int64s;
  for (std::uint32_t i = 0; i < 40; ++i) int64s += tokens_of(4, i, 1) + std::string(4, '\0');
  const std::string rest =
      "\n  write them as 32 bits, tokens.astype(\"uint32\").tofile(FILE), and set "
      "\"token_bytes\": 4 in \"data\"";
  CHECK(width_of({.bytes = int64s}) ==
        "/d/t-000000.bin: has tokens of 64 bits, and is read as tokens of 16 bits: 3 of 4 would "
        "be padding" +
            rest);
  CHECK(width_of({.bytes = int64s, .recipe = 4}) ==
        "/d/t-000000.bin: has tokens of 64 bits, and is read as tokens of 32 bits: 1 of 2 would "
        "be padding" +
            rest);
}

TEST_CASE("few tokens, or zeros alone, say nothing about their width") {
  CHECK(width_of({.bytes = tokens_of(4, 1, 15)}) == "2");
  CHECK(width_of({.bytes = std::string(400, '\0')}) == "2");
  CHECK(width_of({.bytes = ""}) == "2");
}

TEST_CASE("an index that is not understood, and a file that stands in for the tokens, are named") {
  CHECK(width_of({.bytes = tokens_of(2), .index = megatron(6)}) ==
        "/d/t-000000.idx: says that its .bin has values of Megatron-LM's type 6\n"
        "  tokens are read as int16, uint16 or int32 (types 3, 8 and 4): write them again");
  CHECK(width_of({.bytes = tokens_of(2), .index = std::string("TNTIDX\0\0", 8)})
            .starts_with("/d/t-000000.idx: is an index of fairseq"));
  CHECK(width_of({.bytes = tokens_of(2), .index = "version https://git-lfs.github.com/spec/v1\n"})
            .starts_with("/d/t-000000.idx: is a git-lfs pointer"));
  CHECK(width_of({.bytes = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\n"})
            .starts_with("/d/t-000000.bin: is a git-lfs pointer"));
}

}  // namespace scaletrain::format
