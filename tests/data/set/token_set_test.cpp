#include "lib/data/set/token_set.h"

#include <doctest/doctest.h>

#include <numeric>

#include "lib/format/tokens/token_card.h"
#include "lib/format/tokens/token_mask.h"
#include "tests/format/tar/tar_support.h"
#include "tests/temporary_folder.h"

using namespace scaletrain::data;  // NOLINT(google-build-using-namespace)
using scaletrain::format::message_of;
using scaletrain::test::TemporaryFolder;

namespace {

// Tokens first, first + 1, ... of 16 bits.
std::string counting(int first, int count) {
  std::string bytes;
  for (int i = first; i < first + count; ++i) {
    bytes += static_cast<char>(i & 0xff);
    bytes += static_cast<char>(i >> 8);
  }
  return bytes;
}

std::vector<std::int64_t> window_of(const TokenSet& set, std::int64_t file, std::int64_t window) {
  std::vector<std::int64_t> tokens(static_cast<std::size_t>(set.context())), targets = tokens;
  CHECK(set.read(file, window, tokens, targets) == set.context());
  CHECK(std::equal(tokens.begin() + 1, tokens.end(), targets.begin()));
  tokens.push_back(targets.back());
  return tokens;
}

}  // namespace

TEST_CASE("windows overlap by one token and leave no input out but a run's rest") {
  const TemporaryFolder folder;
  const TokenSet set(
      {folder.write("a.bin", counting(0, 21)), folder.write("b.bin", counting(500, 3)),
       folder.write("c.bin", counting(1000, 10))},
      {.context = 4});
  // 20 / 4, 2 / 4 and 9 / 4 windows.
  CHECK(set.window_counts() == std::vector<std::int64_t>{5, 0, 2});
  CHECK(window_of(set, 0, 0) == std::vector<std::int64_t>{0, 1, 2, 3, 4});
  CHECK(window_of(set, 0, 4) == std::vector<std::int64_t>{16, 17, 18, 19, 20});
  CHECK(window_of(set, 2, 1) == std::vector<std::int64_t>{1004, 1005, 1006, 1007, 1008});
  CHECK(set.name(2) == "c.bin");
}

TEST_CASE("windows do not reach over the arrays of a tar") {
  const TemporaryFolder folder;
  const auto array = [](int first, int count) {
    std::string header =
        fmt::format("{{'descr': '<u2', 'fortran_order': False, 'shape': ({},), }}", count);
    header.resize(118, ' ');
    return std::string("\x93NUMPY\x01\x00\x76\x00", 10) + header + counting(first, count);
  };
  using scaletrain::format::tar_end;
  using scaletrain::format::tar_member;
  const TokenSet set(
      {folder.write("a.tar", tar_member("0.npy", array(0, 9)) + tar_member("1.npy", array(100, 3)) +
                                 tar_member("2.npy", array(200, 5)) + tar_end())},
      {.context = 4});
  CHECK(set.window_counts() == std::vector<std::int64_t>{3});
  CHECK(window_of(set, 0, 1) == std::vector<std::int64_t>{4, 5, 6, 7, 8});
  CHECK(window_of(set, 0, 2) == std::vector<std::int64_t>{200, 201, 202, 203, 204});
}

TEST_CASE("targets that the mask marks are left out and not counted, over the arrays of a file") {
  const TemporaryFolder folder;
  const auto array = [](int first, int count) {
    std::string header =
        fmt::format("{{'descr': '<u2', 'fortran_order': False, 'shape': ({},), }}", count);
    header.resize(118, ' ');
    return std::string("\x93NUMPY\x01\x00\x76\x00", 10) + header + counting(first, count);
  };
  const std::string path =
      folder.write("a.tar", scaletrain::format::tar_member("0.npy", array(0, 6)) +
                                scaletrain::format::tar_member("1.npy", array(100, 9)) +
                                scaletrain::format::tar_end());
  // Tokens 0, 3 and 4 of the first array; 1, 4, 5 and 8 of the second: 15 in all.
  const std::vector<std::uint8_t> marked{1, 0, 0, 1, 1, 0, 0, 1, 0, 0, 1, 1, 0, 0, 1};
  folder.write("a.tar.mask", scaletrain::format::encode_mask(marked));
  const TokenSet set({path}, {.context = 4});
  CHECK(set.window_counts() == std::vector<std::int64_t>{3});
  CHECK(set.has_masks());
  std::vector<std::int64_t> tokens(4), targets(4);
  CHECK(set.read(0, 0, tokens, targets) == 2);
  CHECK(tokens == std::vector<std::int64_t>{0, 1, 2, 3});
  CHECK(targets == std::vector<std::int64_t>{1, 2, -100, -100});
  CHECK(set.read(0, 1, tokens, targets) == 2);
  CHECK(tokens == std::vector<std::int64_t>{100, 101, 102, 103});
  CHECK(targets == std::vector<std::int64_t>{-100, 102, 103, -100});
  CHECK(set.read(0, 2, tokens, targets) == 2);
  CHECK(targets == std::vector<std::int64_t>{-100, 106, 107, -100});

  folder.write("a.tar.mask", scaletrain::format::encode_mask({marked.data(), 14}));
  CHECK(message_of([&] {
          TokenSet({path}, {.context = 4});
        }).starts_with(path + ".mask: byte 8: is for 14 tokens, and the file beside it has 15"));
}

TEST_CASE("a set whose masks leave out all targets is refused") {
  const TemporaryFolder folder;
  const std::vector<std::string> paths{folder.write("a.bin", counting(0, 9)),
                                       folder.write("b.bin", counting(0, 9))};
  std::vector<std::uint8_t> marked(9, 1);
  folder.write("a.bin.mask", scaletrain::format::encode_mask(marked));
  CHECK(message_of([&] {
          TokenSet({paths[0]}, {.context = 4});
        }).starts_with(paths[0] + ": no token has a loss: the masks exclude all of them\n"));
  CHECK(TokenSet(paths, {.context = 4}).size() == 4);  // the second has no mask
  marked[3] = 0;
  folder.write("a.bin.mask", scaletrain::format::encode_mask(marked));
  CHECK(TokenSet({paths[0]}, {.context = 4}).size() == 2);
}

TEST_CASE("the index of Megatron-LM beside a file says how wide its tokens are") {
  const TemporaryFolder folder;
  const std::string path = folder.write("a.bin", counting(0, 18));
  folder.write("a.idx", std::string("MMIDIDX\0\0\1\0\0\0\0\0\0\0\4", 18));
  CHECK(TokenSet({path}, {.context = 4}).window_counts() == std::vector<std::int64_t>{2});  // of 9
}

TEST_CASE("a token that the model does not have is named with its byte") {
  const TemporaryFolder folder;
  const TokenSet set({folder.write("a.bin", counting(0, 9))}, {.context = 4, .vocab_size = 7});
  std::vector<std::int64_t> tokens(4), targets(4);
  CHECK(set.read(0, 0, tokens, targets) == 4);
  CHECK(message_of([&] { (void)set.read(0, 1, tokens, targets); }) ==
        "a.bin: byte 14: token 7 is beyond the model's vocabulary of 7 (/model/vocab_size)\n"
        "  tokenize with the model's tokenizer, or check /data/token_bytes");
  const TokenSet last({folder.write("b.bin", counting(0, 5))}, {.context = 4, .vocab_size = 4});
  CHECK(message_of([&] {
          (void)last.read(0, 0, tokens, targets);
        }).starts_with("b.bin: byte 8: token 4"));  // a target only
}

TEST_CASE("the card beside the files tells where documents end and how long a token is") {
  const TemporaryFolder folder;
  const std::string path = folder.write("a-000000.bin", counting(0, 9));
  CHECK(!TokenSet({path}, {.context = 4}).end_of_text().has_value());
  scaletrain::format::TokenCard card{
      .tokenizer = "bytes", .vocab_size = 257, .end_of_text = 256, .token_bytes = 2};
  card.files = {{"a-000000.bin", 9, 7}};
  folder.write("a.tokens.json", scaletrain::format::token_card_json(card).dump());
  const TokenSet set({path}, {.context = 4, .vocab_size = 257});
  CHECK(set.end_of_text() == 256);
  CHECK(!set.has_masks());
  CHECK(set.bytes_per_token() == doctest::Approx(7.0 / 9.0));
  CHECK_THROWS_AS(TokenSet({path}, {.context = 4, .vocab_size = 256}),
                  scaletrain::core::RecipeError);
}

TEST_CASE("not one whole window is an error") {
  const TemporaryFolder folder;
  const std::string path = folder.write("a.bin", counting(0, 4));
  CHECK(message_of([&] { TokenSet({path}, {.context = 4}); }) ==
        path +
            ": there is no window of 5 tokens in 1 file\n  use a shorter context, or longer files");
}
