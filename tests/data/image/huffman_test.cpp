#include "lib/data/image/huffman.h"

#include <doctest/doctest.h>

#include <string>

using namespace scaletrain::data;  // NOLINT(google-build-using-namespace)

namespace {

using Bytes = std::vector<std::uint8_t>;
using Block = std::array<std::int16_t, 64>;

// Codes 0, 10, 110 and so on, then one of 16 bits, for the symbols in their order.
HuffmanCodes codes(const Bytes& symbols) {
  HuffmanCodes result;
  for (std::size_t i = 0; i < symbols.size(); ++i) {
    ++result.counts[i + 1 < symbols.size() ? i + 1 : 16];
    result.symbols[i] = symbols[i];
  }
  return result;
}

// DC: sizes 0, 2 and 11. AC: the end, 16 zeros, one zero and 3 bits, 10 bits, 15 bits.
struct Tables {
  HuffmanTable dc, ac;
  Tables() {
    dc.prepare(codes({0, 2, 11}), HuffmanTable::Kind::kDc);
    ac.prepare(codes({0x00, 0xf0, 0x13, 0x0a, 0x0f}), HuffmanTable::Kind::kAc);
  }
};

// "1" and "0" as bytes, filled up with ones and escaped, then an end marker.
Bytes packed(std::string bits) {
  while (bits.size() % 8 != 0) bits += '1';
  Bytes bytes;
  for (std::size_t i = 0; i < bits.size(); i += 8) {
    bytes.push_back(static_cast<std::uint8_t>(std::stoi(bits.substr(i, 8), nullptr, 2)));
    if (bytes.back() == 0xff) bytes.push_back(0);
  }
  bytes.insert(bytes.end(), {0xff, 0xd9});
  return bytes;
}

const std::string kLongDcCode = "1100000000000000", kLongAcCode = "1111000000000000";

}  // namespace

TEST_CASE("a block is a difference, then runs of zeros and values in the order of the diagonals") {
  const Tables tables;
  HuffmanScan scan;
  // 10 01: -2; 110 111: +7 after a zero; 1110 0111111111: -512; the end.
  const Bytes file = packed(
      "1001"
      "110111"
      "11100111111111"
      "0");
  CHECK(scan.open(file) == static_cast<std::int64_t>(file.size()) - 2);
  std::int32_t dc = 100;
  Block block{}, expected{};
  REQUIRE(scan.read_block(tables.dc, tables.ac, dc, block.data()));
  CHECK(dc == 98);
  expected[0] = 98;
  expected[8] = 7;      // the second below the first
  expected[16] = -512;  // the third
  CHECK(block == expected);
  CHECK(!scan.overrun());
  CHECK(scan.left() == 0);
}

TEST_CASE("codes and values that a look-up does not hold are read too") {
  const Tables tables;
  HuffmanScan scan;
  // A difference of 11 bits; 15 bits after a code of 16; 32 zeros; a zero and a value; the
  // end.
  const std::string difference = kLongDcCode + std::string(11, '1');
  const Bytes file = packed(difference + kLongAcCode + std::string(15, '0') +
                            "10"
                            "10"
                            "110100"
                            "0");
  scan.open(file);
  std::int32_t dc = 0;
  Block block{}, expected{};
  REQUIRE(scan.read_block(tables.dc, tables.ac, dc, block.data()));
  expected[0] = 2047;
  expected[1] = -32767;
  expected[56] = 4;  // number 35 of the diagonals
  CHECK(block == expected);
  CHECK(scan.left() == 0);
}

TEST_CASE("a full block has no end") {
  const Tables tables;
  HuffmanScan scan;
  std::string bits = "0";
  for (int i = 0; i < 63; ++i) bits += "11101000000000";  // 512
  scan.open(packed(bits + bits));
  std::int32_t dc = 5;
  for (int i = 0; i < 2; ++i) {
    Block block{}, expected{};
    REQUIRE(scan.read_block(tables.dc, tables.ac, dc, block.data()));
    expected.fill(512);
    expected[0] = 5;
    CHECK(block == expected);
  }
  CHECK(scan.left() == 0);
}

TEST_CASE("what leads behind the block is its last coefficient, as in libjpeg") {
  const Tables tables;
  HuffmanScan scan;
  scan.open(
      packed("0"
             "10"
             "10"
             "10"
             "1110"
             "1000000000"
             "110100"
             "0"));
  std::int32_t dc = 0;
  Block block{}, expected{};
  std::string bits = "0";
  for (int i = 0; i < 62; ++i) bits += "11101000000000";
  scan.open(packed(bits + "110100" + "0"));  // a zero at 63, and a value behind
  REQUIRE(scan.read_block(tables.dc, tables.ac, dc, block.data()));
  expected.fill(512);
  expected[0] = 0;
  expected[63] = 4;
  CHECK(block == expected);
}

TEST_CASE("escapes are taken out, and data without a marker is refused") {
  const Tables tables;
  HuffmanScan scan;
  const Bytes file = packed(
      "10"
      "11"
      "1110"
      "1111111111"
      "0");  // be ff 00 ...
  CHECK(file[1] == 0xff);
  CHECK(file[2] == 0);
  CHECK(scan.open(file) == static_cast<std::int64_t>(file.size()) - 2);
  std::int32_t dc = 0;
  Block block{};
  REQUIRE(scan.read_block(tables.dc, tables.ac, dc, block.data()));
  CHECK(block[0] == 3);
  CHECK(block[1] == 1023);
  CHECK(scan.open(Bytes{1, 2, 3}) == -1);
  CHECK(scan.open(Bytes{1, 0xff}) == -1);
  CHECK(scan.open(Bytes{1, 0xff, 0, 7}) == -1);
  CHECK(scan.open(Bytes{1, 0xff, 0xff, 0xd9}) == 2);  // filled up before the marker
}

TEST_CASE("pieces between restart markers are read in any order") {
  const Tables tables;
  Bytes file;
  for (int i = 0; i < 10; ++i) {  // +2 or +3, the end, four ones: a byte
    Bytes piece = packed(i % 2 == 0 ? "10100" : "10110");
    piece.back() = static_cast<std::uint8_t>(i < 9 ? 0xd0 + i % 8 : 0xd9);
    file.insert(file.end(), piece.begin(), piece.end());
  }
  HuffmanScan scan;
  CHECK(scan.open(file, 10) == 28);
  for (const int piece : {0, 9, 3, 4}) {
    scan.seek(piece);
    CHECK(scan.left() == 1);
    std::int32_t dc = 0;
    Block block{};
    REQUIRE(scan.read_block(tables.dc, tables.ac, dc, block.data()));
    CHECK(dc == 2 + piece % 2);
    CHECK(scan.left() == 0);
    CHECK(!scan.overrun());
  }
  CHECK(scan.open(file, 9) == 25);   // up to a marker
  CHECK(scan.open(file, 11) == -1);  // there are fewer
  file[2] = 0xd1;                    // the first marker's number
  CHECK(scan.open(file, 10) == -1);
}

TEST_CASE("unknown codes and missing bits are reported") {
  const Tables tables;
  HuffmanScan scan;
  std::int32_t dc = 0;
  Block block{};
  scan.open(packed("0" + std::string(20, '1')));
  CHECK(!scan.read_block(tables.dc, tables.ac, dc, block.data()));
  scan.open(
      packed("0"
             "1110"
             "10"));  // fewer than 10 bits; zeros are read for the others
  CHECK(scan.read_block(tables.dc, tables.ac, dc, block.data()));
  CHECK(scan.overrun());
  scan.open(
      packed("0"
             "0" +
             std::string(24, '0')));
  CHECK(scan.read_block(tables.dc, tables.ac, dc, block.data()));
  CHECK(!scan.overrun());
  CHECK(scan.left() == 3);
}

TEST_CASE("a table is made again for other codes only") {
  HuffmanTable table;
  table.prepare(codes({0, 2, 11}), HuffmanTable::Kind::kDc);
  CHECK(table.at(0).bits() == 1);
  table.prepare(codes({2, 0, 11}), HuffmanTable::Kind::kDc);
  CHECK(table.at(0).bits() == 3);
  CHECK(table.at(0).value() == -3);
  CHECK(table.long_code(~std::uint64_t{0}).length == 0);
}
