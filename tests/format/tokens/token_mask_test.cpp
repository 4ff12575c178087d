#include "lib/format/tokens/token_mask.h"

#include <doctest/doctest.h>

#include <cstring>
#include <vector>

#include "tests/format/tar/tar_support.h"

using namespace scaletrain::format;  // NOLINT(google-build-using-namespace)

namespace {

ReadAt mask_reader_of(const std::string& bytes) {
  return [&bytes](std::int64_t offset, std::span<std::byte> out) {
    std::memcpy(out.data(), bytes.data() + offset, out.size());
  };
}

std::string mask_error(const std::string& bytes, std::int64_t tokens) {
  return message_of([&] {
    check_mask("a.bin.mask", static_cast<std::int64_t>(bytes.size()), tokens,
               mask_reader_of(bytes));
  });
}

// The worked example of docs/reference/formats/tokens.md: tokens 0, 1, 2 and 9 of 10 carry no loss.
const std::vector<std::uint8_t> kTenTokens{1, 1, 1, 0, 0, 0, 0, 0, 0, 1};
const std::string kTenBits("stmask1\n\x0a\0\0\0\0\0\0\0\x07\x02", 18);

}  // namespace

TEST_CASE("a mask is a bit a token, the lowest of a byte first, behind 16 bytes") {
  CHECK(encode_mask(kTenTokens) == kTenBits);
  CHECK(encode_mask({}) == std::string("stmask1\n\0\0\0\0\0\0\0\0", 16));
  CHECK_NOTHROW(check_mask("a.bin.mask", 18, 10, mask_reader_of(kTenBits)));
  CHECK(token_mask_path("s3://b/a-000001.bin") == "s3://b/a-000001.bin.mask");
}

TEST_CASE("any part of a mask is read") {
  std::vector<std::uint8_t> mask(41);
  for (std::size_t i = 0; i < mask.size(); ++i) mask[i] = i % 3 == 0 || i > 30 ? 1 : 0;
  const std::string bytes = encode_mask(mask);
  for (std::size_t first = 0; first < mask.size(); ++first) {
    for (std::size_t count = 0; first + count <= mask.size(); ++count) {
      std::vector<std::uint8_t> part(count, 7);
      read_mask(static_cast<std::int64_t>(first), part, mask_reader_of(bytes));
      CHECK((part ==
             std::vector<std::uint8_t>(mask.begin() + static_cast<std::ptrdiff_t>(first),
                                       mask.begin() + static_cast<std::ptrdiff_t>(first + count))));
    }
  }
}

TEST_CASE("a mask that does not fit its file is refused") {
  const std::string remedy =
      "\n  write it again for this file, or delete it: all tokens count then";
  CHECK(mask_error("short", 10) == "a.bin.mask: byte 0: is not a token mask" + remedy);
  CHECK(mask_error("x" + kTenBits.substr(1), 10) ==
        "a.bin.mask: byte 0: is not a token mask" + remedy);
  CHECK(mask_error(kTenBits, 11) ==
        "a.bin.mask: byte 8: is for 10 tokens, and the file beside it has 11" + remedy);
  CHECK(mask_error(kTenBits, 9) ==
        "a.bin.mask: byte 8: is for 10 tokens, and the file beside it has 9" + remedy);
  CHECK(mask_error(kTenBits.substr(0, 17), 10) ==
        "a.bin.mask: byte 17: has 17 bytes, and 10 tokens take 18" + remedy);
  CHECK(mask_error(kTenBits + "x", 10) ==
        "a.bin.mask: byte 18: has 19 bytes, and 10 tokens take 18" + remedy);
}

TEST_CASE("a mask leaves out all targets where no token of a window but its first carries a loss") {
  // Two runs of 5 and 6 tokens with windows of 2: targets are tokens 1 to 4 and 6 to 9.
  const std::vector<TokenRun> runs{{0, 5, 2}, {10, 6, 2}};
  for (std::size_t free = 0; free < 11; ++free) {
    CAPTURE(free);
    std::vector<std::uint8_t> mask(11, 1);
    mask[free] = 0;
    const std::string bytes = encode_mask(mask);
    CHECK(any_target(runs, 2, mask_reader_of(bytes)) == (free != 0 && free != 5 && free != 10));
  }
}
