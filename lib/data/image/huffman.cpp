#include "lib/data/image/huffman.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace scaletrain::data {
namespace {

constexpr std::uint8_t kEscape = 0xff;
constexpr int kFirstRestart = 0xd0, kRestarts = 8;  // restart markers, numbered cyclically
// Run length of the end-of-block code: skips all remaining coefficients.
constexpr int kEndRun = 128;

// More than the bytes of kMostBlocks blocks: 64 coefficients of at most 16 + 15 bits each.
constexpr std::size_t kPadding = 4096;

// Position in the block of coefficient k in zigzag order; every k past the end maps to the last
// position, as in libjpeg.
constexpr auto kPlaces = [] {
  constexpr std::array<std::uint8_t, 64> kZigZag{
      0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40, 48,
      41, 34, 27, 20, 13, 6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23,
      30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};
  std::array<std::uint8_t, 64 + kEndRun> places{};
  for (std::size_t k = 0; k < places.size(); ++k) places[k] = k < 64 ? kZigZag[k] : 63;
  return places;
}();

// Returns the number that `size` bits encode; a leading 1 means that it is positive.
std::int32_t signed_value(std::int32_t bits, int size) {
  return bits < 1 << (size - 1) ? bits - (1 << size) + 1 : bits;
}

// Afterwards the buffer has at least 56 bits.
inline void refill(HuffmanBits& bits) {
  std::uint64_t word = 0;
  std::memcpy(&word, bits.next, sizeof word);
  if constexpr (std::endian::native == std::endian::little) word = __builtin_bswap64(word);
  bits.buffer |= word >> bits.count;
  bits.next += (63 - bits.count) >> 3;
  bits.count |= 56;
}

inline void drop(HuffmanBits& bits, int count) {
  bits.buffer <<= count;
  bits.count -= count;
}

// Reads a signed number of `size` bits, 1 to 15.
inline std::int32_t read_number(HuffmanBits& bits, int size) {
  const auto number = static_cast<std::int32_t>(bits.buffer >> (64 - size));
  drop(bits, size);
  return signed_value(number, size);
}

// Completes a symbol whose code may be longer than one look-up; returns -1 for an invalid code.
inline int read_symbol(HuffmanBits& bits, const HuffmanTable& table, HuffmanTable::Entry entry) {
  HuffmanTable::Code code{entry.run(), entry.value()};
  if (code.length == 0) code = table.long_code(bits.buffer);
  if (code.length == 0) return -1;
  drop(bits, code.length);
  return code.symbol;
}

// Implements HuffmanScan::read_block. `bits` is a local copy of the caller, so that it stays in
// registers.
inline bool read_coefficients(HuffmanBits& bits, const HuffmanTable& dc_table,
                              const HuffmanTable& ac_table, std::int32_t& dc, std::int16_t* block) {
  constexpr std::int32_t kMostDc = 1 << 20;  // far above the values of any picture
  constexpr int kTogether = 3;  // coefficients between refills: the last one may need 31 of 56 bits
  refill(bits);
  if (const HuffmanTable::Entry entry = dc_table.at(bits.buffer); entry.bits() > 0) {
    drop(bits, entry.bits());
    dc += entry.value();
  } else {
    const int size = read_symbol(bits, dc_table, entry);
    if (size < 0 || size > 15) return false;
    if (size > 0) dc += read_number(bits, size);
  }
  if (dc > kMostDc || dc < -kMostDc) return false;
  block[0] = static_cast<std::int16_t>(dc);
  for (int k = 1;;) {
    refill(bits);
    for (int i = 0; i < kTogether; ++i) {
      const HuffmanTable::Entry entry = ac_table.at(bits.buffer);
      if (entry.bits() > 0) {
        drop(bits, entry.bits());
        k += entry.run();
        block[kPlaces[static_cast<std::size_t>(k)]] = static_cast<std::int16_t>(entry.value());
        if (++k >= HuffmanScan::kCoefficients) return true;
        continue;
      }
      const int symbol = read_symbol(bits, ac_table, entry);
      if (symbol < 0) return false;
      const int size = symbol % 16;
      if (size == 0 && symbol < 0xf0) return true;
      k += symbol / 16;
      if (size > 0) {
        block[kPlaces[static_cast<std::size_t>(k)]] =
            static_cast<std::int16_t>(read_number(bits, size));
      }
      if (++k >= HuffmanScan::kCoefficients) return true;
      break;  // the buffer may have too few bits left
    }
  }
}

}  // namespace

void HuffmanTable::prepare(const HuffmanCodes& codes, Kind kind) {
  if (is_ready_ && codes == codes_) return;
  codes_ = codes;
  is_ready_ = true;
  fill(kind);
}

void HuffmanTable::fill(Kind kind) {
  entries_.fill({});
  std::int32_t code = 0, place = 0;
  for (int length = 1; length <= kMaxCodeBits; ++length, code <<= 1) {
    const int count = codes_.counts[static_cast<std::size_t>(length)];
    offset_[static_cast<std::size_t>(length)] = place - code;
    for (int i = 0; i < count && length <= kLookupBits; ++i) {
      const int symbol = codes_.symbols[static_cast<std::size_t>(place + i) % 256];
      const int size = kind == Kind::kDc ? symbol : symbol % 16;
      const int run = kind == Kind::kDc ? 0 : symbol / 16;
      const int spare = kLookupBits - length;
      Entry* const first = entries_.data() + (static_cast<std::size_t>(code + i) << spare);
      if (size > spare) {
        std::fill_n(first, std::size_t{1} << spare, Entry(symbol, length, 0));
        continue;
      }
      const bool is_end = kind == Kind::kAc && size == 0 && run < 15;
      for (std::int32_t bits = 0; bits < 1 << size; ++bits) {
        const Entry entry(size == 0 ? 0 : signed_value(bits, size), is_end ? kEndRun : run,
                          length + size);
        const int rest = spare - size;
        std::fill_n(first + (static_cast<std::size_t>(bits) << rest), std::size_t{1} << rest,
                    entry);
      }
    }
    code += count;
    place += count;
    last_code_[static_cast<std::size_t>(length)] = count > 0 ? code - 1 : -1;
  }
}

HuffmanTable::Code HuffmanTable::long_code(std::uint64_t next_bits) const {
  for (int length = kLookupBits + 1; length <= kMaxCodeBits; ++length) {
    const auto i = static_cast<std::size_t>(length);
    const auto code = static_cast<std::int32_t>(next_bits >> (64 - length));
    if (code > last_code_[i]) continue;
    return {length, codes_.symbols[static_cast<std::size_t>(code + offset_[i]) % 256]};
  }
  return {};
}

std::int64_t HuffmanScan::open(std::span<const std::uint8_t> file, std::int64_t pieces) {
  if (data_.size() < file.size() + kPadding) data_.resize(file.size() + kPadding);
  ends_.clear();
  const std::uint8_t* in = file.data();
  const std::uint8_t* const end = in + file.size();
  std::uint8_t* out = data_.data();
  for (;;) {
    const auto* const escape = static_cast<const std::uint8_t*>(
        std::memchr(in, kEscape, static_cast<std::size_t>(end - in)));
    if (escape == nullptr) return -1;
    out = std::copy(in, escape, out);
    in = std::find_if(escape, end, [](std::uint8_t byte) { return byte != kEscape; });
    if (in == end) return -1;
    if (*in == 0) {
      *out++ = kEscape;
    } else {  // a marker
      ends_.push_back(out - data_.data());
      if (std::ssize(ends_) == pieces) break;
      if (*in != kFirstRestart + (std::ssize(ends_) - 1) % kRestarts) return -1;
    }
    ++in;
  }
  std::fill_n(out, kPadding, std::uint8_t{0});
  seek(0);
  return in - file.data() - 1;
}

void HuffmanScan::seek(std::int64_t piece) {
  const auto i = static_cast<std::size_t>(piece);
  bits_ = {.next = data_.data() + (piece == 0 ? 0 : ends_[i - 1])};
  end_ = data_.data() + ends_[i];
}

bool HuffmanScan::read_block(const HuffmanTable& dc_table, const HuffmanTable& ac_table,
                             std::int32_t& dc, std::int16_t* block) {
  HuffmanBits bits = bits_;
  const bool is_sound = read_coefficients(bits, dc_table, ac_table, dc, block);
  bits_ = bits;
  return is_sound;
}

}  // namespace scaletrain::data
