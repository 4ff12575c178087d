// The Huffman codes of a baseline JPEG (ITU-T T.81, annex F), several times as many a second as
// libjpeg-turbo reads: the escapes of a scan are taken out beforehand, so that eight bytes can be
// loaded at once, and one look-up gives a whole coefficient with its run of zeros.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace scaletrain::data {

inline constexpr int kMaxCodeBits = 16;

// As a file defines them: how many codes there are of each length from 1 on, and their symbols.
struct HuffmanCodes {
  std::array<std::uint8_t, kMaxCodeBits + 1> counts{};
  std::array<std::uint8_t, 256> symbols{};

  bool operator==(const HuffmanCodes&) const = default;
};

class HuffmanTable {
 public:
  static constexpr int kLookupBits = 11;

  // Decoded meaning of the next bits, packed into 32 bits. With bits() > 0 they hold a whole
  // coefficient: run() zeros and then value(). Otherwise run() is the length of the code and
  // value() its symbol; a length of 0: the code is longer than kLookupBits.
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

  // Tables of DC differences have sizes for symbols, tables of AC coefficients runs and sizes.
  // `codes` are sound: libjpeg has looked at them. Does nothing for the codes of the last time.
  enum class Kind { kDc, kAc };
  void prepare(const HuffmanCodes& codes, Kind kind);

  Entry at(std::uint64_t next_bits) const { return entries_[next_bits >> (64 - kLookupBits)]; }

  struct Code {
    int length = 0;  // 0: there is no such code
    int symbol = 0;
  };
  Code long_code(std::uint64_t next_bits) const;  // one that is longer than kLookupBits

 private:
  void fill(Kind kind);

  HuffmanCodes codes_;
  bool is_ready_ = false;
  std::array<Entry, 1U << kLookupBits> entries_{};
  std::array<std::int32_t, kMaxCodeBits + 1> last_code_{};  // for each code length; -1: none
  std::array<std::int32_t, kMaxCodeBits + 1> offset_{};     // code + offset: index of its symbol
};

// Position of the bit reader.
struct HuffmanBits {
  const std::uint8_t* next = nullptr;
  std::uint64_t buffer = 0;  // the next bits from the top on
  int count = 0;             // valid bits in `buffer`
};

// The data of one scan: one piece, or several with restart markers between them, each of which can
// be read without the others.
class HuffmanScan {
 public:
  static constexpr int kCoefficients = 64;
  static constexpr int kMostBlocks = 10;  // between two looks at overrun()

  // Takes so many pieces up to the marker behind the last, stands before the first, and returns how
  // many bytes of `file` that were; -1 where another marker is between them, or none behind them.
  std::int64_t open(std::span<const std::uint8_t> file, std::int64_t pieces = 1);

  // Goes to the front of a piece.
  void seek(std::int64_t piece);

  // Reads a block into `block` (64 coefficients, row by row), which holds zeros. `dc` is the first
  // coefficient of the component's block before. False for a code that the tables do not have.
  bool read_block(const HuffmanTable& dc_table, const HuffmanTable& ac_table, std::int32_t& dc,
                  std::int16_t* block);

  // Whole bytes of the piece that no block has touched yet.
  std::int64_t left() const { return end_ - bits_.next + bits_.count / 8; }
  // True if the blocks took more bits than the piece has.
  bool overrun() const { return 8 * (bits_.next - end_) > bits_.count; }

 private:
  std::vector<std::uint8_t> data_;  // the pieces one after another, with zeros behind them
  std::vector<std::int64_t> ends_;  // end of each piece in data_
  const std::uint8_t* end_ = nullptr;
  HuffmanBits bits_;
};

}  // namespace scaletrain::data
