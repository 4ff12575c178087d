#include "lib/data/token_set.h"

#include <doctest/doctest.h>

#include <numeric>

#include "tests/format/tar_support.h"
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
  std::vector<std::int64_t> tokens(static_cast<std::size_t>(set.context()) + 1);
  set.read(file, window, tokens);
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

TEST_CASE("not one whole window is an error") {
  const TemporaryFolder folder;
  const std::string path = folder.write("a.bin", counting(0, 4));
  CHECK(message_of([&] { TokenSet({path}, {.context = 4}); }) ==
        path + ": not one window of 5 tokens in 1 files\n  use a shorter context, or longer files");
}
