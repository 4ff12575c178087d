#include "lib/format/tar/tar_header.h"

#include <charconv>
#include <numeric>
#include <stdexcept>

#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "lib/core/text/text.h"

namespace scaletrain::format {
namespace {

// Fields of a ustar header block: offset and length.
struct Field {
  std::size_t offset, length;
};
constexpr Field kName{0, 100}, kSize{124, 12}, kChecksum{148, 8}, kPrefix{345, 155};
constexpr std::size_t kType = 156, kMagic = 257, kGnuSparse = 386;

std::string_view field_of(std::string_view block, Field field) {
  return block.substr(field.offset, field.length);
}

// Text up to the first NUL; a full field has none.
std::string_view text_of(std::string_view block, Field field) {
  const std::string_view text = field_of(block, field);
  return text.substr(0, text.find('\0'));
}

// Octal digits with spaces around them, ended by a space or NUL; nullopt for anything else. A field
// has too few of them to overflow.
std::optional<std::int64_t> parse_octal(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size() && text[at] == ' ') ++at;
  std::int64_t value = 0;
  for (; at < text.size(); ++at) {
    const unsigned digit = static_cast<unsigned char>(text[at]) - unsigned{'0'};
    if (digit > 7) break;
    value = value << 3 | digit;
  }
  const bool is_ended = at == text.size() || text[at] == ' ' || text[at] == '\0';
  return is_ended ? std::optional(value) : std::nullopt;
}

// GNU's form of large numbers: the first byte is 0x80, the others are a big-endian number.
std::optional<std::int64_t> parse_base256(std::string_view text) {
  if (text[0] != '\x80') return std::nullopt;
  std::int64_t value = 0;
  for (const char c : text.substr(1)) {
    if (value > INT64_MAX >> 8) return std::nullopt;
    value = value << 8 | static_cast<unsigned char>(c);
  }
  return value;
}

std::optional<std::int64_t> parse_number(std::string_view text) {
  return (static_cast<unsigned char>(text[0]) & 0x80U) != 0 ? parse_base256(text)
                                                            : parse_octal(text);
}

std::int64_t plain_sum_of_bytes(std::string_view block) {
  return std::accumulate(block.begin(), block.end(), std::int64_t{0}, [](std::int64_t sum, char c) {
    return sum + static_cast<unsigned char>(c);
  });
}

#ifdef __x86_64__
__attribute__((target("avx2"))) std::int64_t avx2_sum_of_bytes(std::string_view block) {
  const __m256i zero = _mm256_setzero_si256();
  __m256i sums = zero;  // four, of eight bytes each at a time
  for (std::size_t i = 0; i < block.size(); i += sizeof sums) {
    const auto* const bytes = reinterpret_cast<const __m256i*>(block.data() + i);
    sums = _mm256_add_epi64(sums, _mm256_sad_epu8(_mm256_loadu_si256(bytes), zero));
  }
  const __m128i halves =
      _mm_add_epi64(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
  return _mm_cvtsi128_si64(halves) + _mm_extract_epi64(halves, 1);
}
#endif

// The sum of all bytes of a block.
std::int64_t sum_of_bytes(std::string_view block) {
#ifdef __x86_64__
  static const bool has_avx2 = __builtin_cpu_supports("avx2") != 0;
  if (has_avx2) return avx2_sum_of_bytes(block);
#endif
  return plain_sum_of_bytes(block);
}

// The checksum's own field is taken as spaces. Some old writers summed signed characters.
bool checksum_fits(std::string_view block) {
  const std::string_view own = field_of(block, kChecksum);
  const auto stored = parse_octal(own);
  std::int64_t sum = sum_of_bytes(block) + static_cast<std::int64_t>(own.size()) * ' ';
  for (const char c : own) sum -= static_cast<unsigned char>(c);
  if (!stored || *stored == sum) return stored.has_value();
  for (std::size_t i = 0; i < block.size(); ++i) {
    const bool is_own = i >= kChecksum.offset && i < kChecksum.offset + kChecksum.length;
    if (!is_own && (static_cast<unsigned char>(block[i]) & 0x80U) != 0) sum -= 256;
  }
  return *stored == sum;
}

}  // namespace

void TarHeader::path_to(std::string& path) const {
  if (prefix.empty()) {
    path.assign(name);
    return;
  }
  path.assign(prefix);
  path.push_back('/');
  path.append(name);
}

namespace {

// Recognizes other file formats by their first bytes, for an error message.
const char* other_format(std::string_view block) {
  if (block.starts_with("\x1f\x8b")) return "; it begins like gzip, whose tars are named .tar.gz";
  if (block.starts_with("\x28\xb5\x2f\xfd")) {
    return "; it begins like zstd, whose tars are named .tar.zst";
  }
  if (block.starts_with("PK\x03\x04")) return "; it begins like a zip";
  if (block.starts_with("PAR1")) return "; it begins like Parquet: scaletrain data import parquet";
  return "";
}

}  // namespace

TarHeader parse_tar_header(std::span<const std::byte> bytes) {
  const std::string_view block(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!checksum_fits(block)) {
    throw std::invalid_argument(std::string("no tar header: its checksum is wrong") +
                                other_format(block));
  }
  TarHeader header;
  header.type = block[kType];
  header.sparse = header.type == 'S';
  // Only POSIX's magic has a prefix; GNU's ("ustar " and a space) keeps other things there. For any
  // other magic, readers disagree about the name.
  if (block.substr(kMagic, 5) == "ustar") {
    const char next = block[kMagic + 5];
    if (next != '\0' && next != ' ') {
      throw std::invalid_argument("its magic is neither POSIX's nor GNU's");
    }
    if (next == '\0' && block[kPrefix.offset] != '\0') header.prefix = text_of(block, kPrefix);
    // Some readers go by the type, others by whether GNU's list of pieces has one.
    if (next == ' ' && block[kGnuSparse] != '\0') header.sparse = true;
  }
  header.name = text_of(block, kName);
  const auto size = parse_number(field_of(block, kSize));
  if (!size) throw std::invalid_argument("its size field is not a number");
  header.bytes = *size;
  return header;
}

PaxRecords parse_pax(std::string_view records) {
  PaxRecords result;
  while (!records.empty()) {
    std::size_t length = 0;
    const char* const end = records.data() + records.size();
    const auto parsed = std::from_chars(records.data(), end, length);
    const auto digits = static_cast<std::size_t>(parsed.ptr - records.data());
    if (parsed.ec != std::errc() || length > records.size() || length < digits + 4 ||
        records[digits] != ' ' || records[length - 1] != '\n') {
      throw std::invalid_argument("its pax extended header is damaged");
    }
    const std::string_view record = records.substr(digits + 1, length - digits - 2);
    records.remove_prefix(length);
    const std::size_t equals = record.find('=');
    if (equals == std::string_view::npos) {
      throw std::invalid_argument("its pax extended header is damaged");
    }
    const std::string_view key = record.substr(0, equals), value = record.substr(equals + 1);
    if (key == "path" && !value.empty()) result.path = value;
    if (key.starts_with("GNU.sparse.")) result.sparse = true;
    if (key == "size") {
      result.bytes = core::parse_number<std::int64_t>(value).value_or(-1);
      if (result.bytes < 0) {
        throw std::invalid_argument("the size in its pax extended header is not a number");
      }
    }
  }
  return result;
}

}  // namespace scaletrain::format
