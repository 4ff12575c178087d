#include "launcher/jobs/checks/token_check.h"

#include <doctest/doctest.h>

#include <functional>
#include <numeric>
#include <vector>

#include "lib/core/error.h"
#include "lib/format/tokens/token_card.h"
#include "lib/format/tokens/token_file.h"
#include "lib/format/tokens/token_mask.h"
#include "lib/recipe/recipe.h"
#include "tests/temporary_folder.h"

using namespace scaletrain;  // NOLINT(google-build-using-namespace)

namespace {

// Two files of 41 tokens, 0 to 40: 10 windows of 4 tokens each.
class TokenFolder {
 public:
  TokenFolder() {
    std::vector<std::uint32_t> tokens(41);
    std::iota(tokens.begin(), tokens.end(), 0U);
    for (const char* name : {"a-000000.bin", "a-000001.bin"}) {
      recipe.data.train.tokens.push_back(folder.write(name, format::encode_tokens(tokens, 2)));
    }
    recipe.model.name = "gpt2";
    recipe.model.options = {{"vocab_size", std::int64_t{41}}, {"positions", std::int64_t{8}}};
    recipe.data.context = 4;
    recipe.batch = {.per_device = 5, .accumulate = 2, .global = {}};
  }

  void write_card(std::int64_t vocab_size, std::int64_t tokens = 41,
                  std::int64_t without_loss = 0) const {
    format::TokenCard card{
        .tokenizer = "bytes", .vocab_size = vocab_size, .end_of_text = 0, .token_bytes = 2};
    card.files = {{"a-000000.bin", tokens, 41, without_loss}, {"a-000001.bin", 41, 41}};
    folder.write("a.tokens.json", format::token_card_json(card).dump());
  }

  // What the check says, and the exit code it means; "" and 0 where it is content.
  std::pair<std::string, int> verdict(int ranks = 2) const {
    try {
      launcher::check_tokens(recipe, ranks);
      return {"", 0};
    } catch (const core::Error& error) {
      std::string text = error.what();
      const std::string here = folder.path.string() + "/";
      for (std::size_t at = text.find(here); at != std::string::npos; at = text.find(here)) {
        text.erase(at, here.size());
      }
      return {text, static_cast<int>(error.exit_code())};
    }
  }

  test::TemporaryFolder folder;
  recipe::Recipe recipe;
};

}  // namespace

TEST_CASE("token files that can be trained on pass, also without cards and beside URLs") {
  TokenFolder tokens;
  CHECK((tokens.verdict() == std::pair<std::string, int>{"", 0}));  // 20 windows, 20 a step
  tokens.write_card(41);
  tokens.recipe.data.val.emplace().tokens = {tokens.recipe.data.train.tokens[0]};
  tokens.recipe.data.document_attention = true;
  CHECK((tokens.verdict() == std::pair<std::string, int>{"", 0}));
  tokens.recipe.data.train.tokens[1] = "s3://bucket/a-000001.bin";  // the workers' business
  CHECK((tokens.verdict(4) == std::pair<std::string, int>{"", 0}));
  tokens.recipe = {};
  CHECK((tokens.verdict() == std::pair<std::string, int>{"", 0}));  // of images
}

TEST_CASE("what cannot be trained on is said before the start") {
  struct Case {
    const char* name;
    std::function<void(TokenFolder&)> change;
    std::string text;
    int code;
  };
  const std::vector<Case> cases{
      {"fewer windows than a step", [](TokenFolder& t) { t.recipe.batch.accumulate = 3; },
       "/data/train/tokens: has 20 windows of 5 tokens, and a step takes 30\n"
       "  use a shorter /data/context, a smaller /batch, or more text",
       2},
      {"a global batch",
       [](TokenFolder& t) { t.recipe.batch = {.per_device = 1, .accumulate = {}, .global = 24}; },
       "/data/train/tokens: has 20 windows of 5 tokens, and a step takes 24\n"
       "  use a shorter /data/context, a smaller /batch, or more text",
       2},
      {"nothing to evaluate",
       [](TokenFolder& t) {
         t.recipe.data.val.emplace().tokens = {t.folder.write("v.bin", std::string(8, '\1'))};
         t.recipe.model.options["vocab_size"] = std::int64_t{300};
       },
       "/data/val/tokens: has 0 windows of 5 tokens, and needs one\n"
       "  use a shorter /data/context, or more text",
       2},
      {"a tokenizer with more tokens", [](TokenFolder& t) { t.write_card(50); },
       "/model/vocab_size: 41 is less than the 50 tokens of bytes (a.tokens.json)\n"
       "  use 50 or more",
       2},
      {"a token out of range",
       [](TokenFolder& t) { t.recipe.model.options["vocab_size"] = std::int64_t{40}; },
       "a-000000.bin: byte 80: token 40 is beyond the model's vocabulary of 40 "
       "(/model/vocab_size)\n"
       "  tokenize with the model's tokenizer, or check /data/token_bytes",
       65},
      {"another width", [](TokenFolder& t) { t.recipe.data.token_bytes = 4; },
       "a-000000.bin: byte 80: ends inside a token\n"
       "  a token is 4 bytes: the file is truncated, or of another type",
       65},
      {"a file that the card does not know", [](TokenFolder& t) { t.write_card(41, 40); },
       "a-000000.bin: has 41 tokens, and 40 in a.tokens.json\n"
       "  one of them is not of this set: use another copy, or tokenize again",
       65},
      {"a mask that is missing", [](TokenFolder& t) { t.write_card(41, 41, 7); },
       "a-000000.bin: has no mask beside it, and has one in a.tokens.json\n"
       "  use another copy with its .mask files, or tokenize again: without the mask all tokens "
       "have a loss",
       65},
      {"a mask that leaves out all targets",
       [](TokenFolder& t) {
         std::vector<std::uint8_t> mask(41, 1);
         mask[0] = 0;  // no target
         for (const char* name : {"a-000000.bin.mask", "a-000001.bin.mask"}) {
           t.folder.write(name, format::encode_mask(mask));
         }
       },
       "a-000000.bin: no token has a loss: the masks exclude all of them\n"
       "  tokenize again, with the text to train on in --text-field, or delete the .mask "
       "files and the card: all tokens count then",
       65},
      {"a width that nobody says",
       [](TokenFolder& t) { t.recipe.model.options["vocab_size"] = std::int64_t{128256}; },
       "/data/token_bytes: is left out, and neither a card nor an index beside a-000000.bin says "
       "whether its tokens have 16 or 32 bits; /model/vocab_size is 128256\n"
       "  set 4 for tokens of 32 bits, 2 for tokens of 16 bits",
       2},
      {"a width that is not the card's",
       [](TokenFolder& t) {
         t.write_card(41);
         t.recipe.data.token_bytes = 4;
       },
       "/data/token_bytes: is 4, and a-000000.bin has tokens of 2 bytes, as a.tokens.json says\n"
       "  leave it out",
       2},
      {"an index of another width",
       [](TokenFolder& t) {
         t.folder.write("a-000000.idx", std::string("MMIDIDX\0\0\1\0\0\0\0\0\0\0\1", 18));
       },
       "a-000000.idx: says that its .bin has values of Megatron-LM's type 1\n"
       "  tokens are read as int16, uint16 or int32 (types 3, 8 and 4): write them again",
       65},
      {"a mask of another file",
       [](TokenFolder& t) {
         t.folder.write("a-000001.bin.mask", format::encode_mask(std::vector<std::uint8_t>(40)));
       },
       "a-000001.bin.mask: byte 8: is for 40 tokens, and the file beside it has 41\n"
       "  write it again for this file, or delete it: all tokens count then",
       65},
      {"documents whose ends are not known",
       [](TokenFolder& t) { t.recipe.data.document_attention = true; },
       "/data/document_attention: a-000000.bin has no card beside it, which names the token that "
       "ends a document\n"
       "  use files with their NAME.tokens.json, as scaletrain data tokenize writes them, or leave "
       "it out",
       2},
      {"another form",
       [](TokenFolder& t) { t.recipe.data.train.tokens = {t.folder.write("a.txt", "abc")}; },
       "a.txt: is neither .bin nor .npy nor .tar\n"
       "  use token files of one of these forms (docs/reference/data.md)",
       65},
  };
  for (const Case& one : cases) {
    CAPTURE(one.name);
    TokenFolder tokens;
    one.change(tokens);
    CHECK((tokens.verdict() == std::pair{one.text, one.code}));
  }
}
