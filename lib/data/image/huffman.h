// Huffman decoder for baseline JPEG (ITU-T T.81, annex F), several times as fast as
// libjpeg-turbo's. Escape bytes are removed from a scan beforehand, so that eight bytes can be
// loaded at once, and one table look-up returns a whole coefficient with its run of zeros.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace scaletrain::data {

inline constexpr int kMaxCodeBits = 16;

// A code as a JPEG file defines it: the number of codes of each length, from 1, and their symbols.
struct HuffmanCodes {
  std::array<std::uint8_t, kMaxCodeBits + 1> counts{};
  std::array<std::uint8_t, 256> symbols{};

  bool operator==(const HuffmanCodes&) const = default;
};

class HuffmanTable {
 public:
  static constexpr int kLookupBits = 11;

  // Table entry for the next bits, packed into 32 bits. If bits() > 0, it is a whole coefficient:
  // run() zeros, then value(). If bits() is 0, only the code fits the look-up: run() is its length
  // and value() its symbol. If run() is 0 too, the code is longer than kLookupBits.
  class Entry {
   public:
    Entry() = default;
    Entry(int value, int run, int bits)
        : packed_(static_cast<std::uint32_t>(value) << 16 | static_cast<std::uint32_t>(run) << 8 |
                  static_cast<std::uint32_t>(bits)) {}
    int bits() const { return static_cast<int>(packed_ & 0xff); }
    int run() const { return static_cast<int>(packed_ >> 8 & 0xff); }
    int value() const { return static_cast<std::int32_t>(packed_) >> 16; }

   private:
    std::uint32_t packed_ = 0;
  };

  // Builds the table; does nothing if `codes` are the same as last time. A symbol of a DC table is
  // a size, that of an AC table a run and a size. `codes` must be valid, as libjpeg has checked.
  enum class Kind { kDc, kAc };
  void prepare(const HuffmanCodes& codes, Kind kind);

  Entry at(std::uint64_t next_bits) const { return entries_[next_bits >> (64 - kLookupBits)]; }

  struct Code {
    int length = 0;  // 0: invalid code
    int symbol = 0;
  };
  Code long_code(std::uint64_t next_bits) const;  // for codes longer than kLookupBits

 private:
  void fill(Kind kind);

  HuffmanCodes codes_;
  bool is_ready_ = false;
  std::array<Entry, 1U << kLookupBits> entries_{};
  // By code length; -1: no code of that length.
  std::array<std::int32_t, kMaxCodeBits + 1> last_code_{};
  // Index of a symbol minus its code, by length.
  std::array<std::int32_t, kMaxCodeBits + 1> offset_{};
};

// Position of the bit reader.
struct HuffmanBits {
  const std::uint8_t* next = nullptr;
  std::uint64_t buffer = 0;  // the next bits, from the most significant one
  int count = 0;             // valid bits in `buffer`
};

// The entropy-coded data of one scan. Restart markers divide it into pieces that can be read
// independently.
class HuffmanScan {
 public:
  static constexpr int kCoefficients = 64;
  static constexpr int kMostBlocks = 10;  // blocks that may be read between two checks of overrun()

  // Reads `pieces` pieces of the scan from `file` and seeks to the first one. Returns the number of
  // bytes up to the marker after the last piece; -1 if another marker comes between them or none
  // follows.
  std::int64_t open(std::span<const std::uint8_t> file, std::int64_t pieces = 1);

  // Continues at the start of a piece.
  void seek(std::int64_t piece);

  // Reads a block into `block` (64 coefficients, row by row), which must be zero. `dc`: first
  // coefficient of the component's previous block; updated. Returns false for an invalid code.
  bool read_block(const HuffmanTable& dc_table, const HuffmanTable& ac_table, std::int32_t& dc,
                  std::int16_t* block);

  // Whole bytes of the piece that have not been read yet.
  std::int64_t left() const { return end_ - bits_.next + bits_.count / 8; }
  // True if more bits were read than the piece has.
  bool overrun() const { return 8 * (bits_.next - end_) > bits_.count; }

 private:
  std::vector<std::uint8_t> data_;  // the pieces without escape bytes, followed by zeros
  std::vector<std::int64_t> ends_;  // end of each piece in data_
  const std::uint8_t* end_ = nullptr;
  HuffmanBits bits_;
};

}  // namespace scaletrain::data
