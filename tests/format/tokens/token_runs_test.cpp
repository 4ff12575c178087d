#include "lib/format/tokens/token_runs.h"

#include <doctest/doctest.h>

#include <cstring>

#include "tests/format/tar/tar_support.h"

namespace scaletrain::format {
namespace {

std::vector<TokenRun> runs_of(const std::string& name, const std::string& bytes,
                              std::int64_t raw_bytes = 2) {
  return find_tokens(name, static_cast<std::int64_t>(bytes.size()), raw_bytes,
                     [&](std::int64_t offset, std::span<std::byte> out) {
                       REQUIRE(offset + static_cast<std::int64_t>(out.size()) <=
                               static_cast<std::int64_t>(bytes.size()));
                       std::memcpy(out.data(), bytes.data() + offset, out.size());
                     });
}

std::string error_of_file(const std::string& name, const std::string& bytes,
                          std::int64_t raw_bytes = 2) {
  return message_of([&] { runs_of(name, bytes, raw_bytes); });
}

std::string number(std::uint32_t value) {
  std::string text(4, '\0');
  std::memcpy(text.data(), &value, 4);
  return text;
}

std::string llmc(std::uint32_t magic, std::uint32_t version, std::uint32_t count) {
  std::string header = number(magic) + number(version) + number(count);
  header.resize(1024, '\0');
  return header;
}

std::string npy(const std::string& type, const std::string& shape, std::size_t bytes) {
  std::string header =
      "{'descr': '" + type + "', 'fortran_order': False, 'shape': " + shape + ", }";
  header.resize(118, ' ');  // as numpy aligns it, to 64 bytes
  header.back() = '\n';
  return std::string("\x93NUMPY\x01\x00\x76\x00", 10) + header + std::string(bytes, 'x');
}

}  // namespace

TEST_CASE("a .bin is nothing but numbers, or llm.c's header and numbers") {
  CHECK(runs_of("a.bin", std::string(20, 'x')) == std::vector<TokenRun>{{0, 10, 2}});
  CHECK(runs_of("a.bin", std::string(20, 'x'), 4) == std::vector<TokenRun>{{0, 5, 4}});
  CHECK(runs_of("a.bin", "") == std::vector<TokenRun>{{0, 0, 2}});
  CHECK(runs_of("a.bin", llmc(20240520, 1, 7) + std::string(14, 'x'), 4) ==
        std::vector<TokenRun>{{1024, 7, 2}});
  CHECK(runs_of("a.bin", llmc(20240801, 7, 7) + std::string(28, 'x')) ==
        std::vector<TokenRun>{{1024, 7, 4}});
}

TEST_CASE("a .bin that is cut or of another version is reported with the byte") {
  CHECK(error_of_file("a.bin", std::string(21, 'x'), 4) ==
        "a.bin: byte 20: ends inside a token\n"
        "  a token is 4 bytes: the file is truncated, or of another type");
  CHECK(error_of_file("a.bin", llmc(20240520, 2, 7) + std::string(14, 'x')) ==
        "a.bin: byte 4: version 2 of the header\n  this program reads version 1");
  CHECK(error_of_file("a.bin", llmc(20240520, 1, 7) + std::string(12, 'x')) ==
        "a.bin: byte 8: the header says 7 tokens, 14 bytes, and 12 follow it\n"
        "  the file is truncated, or was changed: write it again");
  CHECK(error_of_file("a.txt", "") ==
        "a.txt: is neither .bin nor .npy nor .tar\n"
        "  use token files of one of these forms (docs/reference/data.md)");
}

TEST_CASE("a .npy is an array of one dimension of 16 or 32 bits") {
  CHECK(runs_of("a.npy", npy("<u2", "(12,)", 24)) == std::vector<TokenRun>{{128, 12, 2}});
  CHECK(runs_of("a.npy", npy("<u4", "(3,)", 12)) == std::vector<TokenRun>{{128, 3, 4}});
  const std::string remedy =
      "\n  write an array of one dimension of uint16 or uint32: numpy.save(file, tokens)";
  CHECK(error_of_file("a.npy", npy("<i8", "(3,)", 24)) ==
        "a.npy: byte 10: an array of type '<i8' and shape (3,)" + remedy);
  CHECK(error_of_file("a.npy", npy("<u2", "(3, 4)", 24)) ==
        "a.npy: byte 10: an array of type '<u2' and shape (3, 4)" + remedy);
  CHECK(error_of_file("a.npy", npy("<u2", "(13,)", 24)) ==
        "a.npy: byte 10: the header says 13 tokens of 2 bytes, and 24 bytes follow it\n"
        "  the array is truncated, or was changed: write it again");
  CHECK(error_of_file("a.npy", "short") ==
        "a.npy: byte 0: is too short for a NumPy array" + remedy);
  CHECK(error_of_file("a.npy", std::string(200, 'x')) ==
        "a.npy: byte 0: is not a NumPy array" + remedy);
  CHECK(error_of_file("a.npy", npy("<u2", "(12,)", 24).substr(0, 60)) ==
        "a.npy: byte 8: a header of 118 bytes" + remedy);
}

TEST_CASE("a .tar has a run for each array in it") {
  const std::string first = npy("<u2", "(12,)", 24), second = npy("<u4", "(3,)", 12);
  const std::string tar = tar_member("0.json", "{}") + tar_member("0.npy", first) +
                          tar_member("1.npy", second) + tar_end();
  // 2 blocks of 0.json; a header block and the array's own header before its tokens.
  CHECK(runs_of("a.tar", tar) ==
        std::vector<TokenRun>{{1024 + 512 + 128, 12, 2}, {2048 + 512 + 128, 3, 4}});
  CHECK(error_of_file("a.tar", tar_member("0.npy", "x") + tar_end())
            .starts_with("a.tar: byte 512: is too short for a NumPy array"));
}

TEST_CASE("any changed byte of a header gives runs within the file or a DataError") {
  for (const std::string& whole :
       {npy("<u2", "(12,)", 24), llmc(20240520, 1, 7) + std::string(14, 'x')}) {
    const std::string name = whole[0] == '\x93' ? "a.npy" : "a.bin";
    for (std::size_t i = 0; i < whole.size(); ++i) {
      for (const int value : {0, 0x7f, 0xff, int{'9'}, int{'('}}) {
        std::string changed = whole;
        changed[i] = static_cast<char>(value);
        try {
          for (const TokenRun& run : runs_of(name, changed)) {
            CHECK(run.count >= 0);
            CHECK(run.offset + run.count * run.token_bytes <=
                  static_cast<std::int64_t>(whole.size()));
          }
        } catch (const core::DataError&) {
        }
      }
    }
  }
}

TEST_CASE("tokens are widened, in place too") {
  std::vector<std::int64_t> tokens(5);
  const std::uint16_t narrow[5] = {1, 0xffff, 3, 0x8000, 5};  // NOLINT(modernize-avoid-c-arrays)
  const auto place = std::as_writable_bytes(std::span(tokens)).last(10);
  std::memcpy(place.data(), narrow, 10);
  widen_tokens(place, 2, tokens);
  CHECK(tokens == std::vector<std::int64_t>{1, 0xffff, 3, 0x8000, 5});
  const std::uint32_t wide[5] = {1, 0xffffffff, 3, 4, 5};  // NOLINT(modernize-avoid-c-arrays)
  const auto place4 = std::as_writable_bytes(std::span(tokens)).last(20);
  std::memcpy(place4.data(), wide, 20);
  widen_tokens(place4, 4, tokens);
  CHECK(tokens == std::vector<std::int64_t>{1, 0xffffffff, 3, 4, 5});
}

}  // namespace scaletrain::format
