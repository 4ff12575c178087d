#include "lib/format/tokens/token_width.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "lib/core/error.h"
#include "lib/core/text/placeholder.h"
#include "lib/core/text/url.h"

namespace scaletrain::format {
namespace {

constexpr std::int64_t kMostOf16Bits = 1 << 16;
constexpr std::int64_t kBytesLookedAt = 1 << 14;
constexpr std::int64_t kFewestTokens = 16;  // fewer tokens show nothing about their width

struct KnownWidth {
  std::int64_t bytes = 0;
  std::string from;  // file that stores the width
};

std::string index_path(const std::string& path) {
  return path.substr(0, path.size() - std::string_view(".bin").size()) + ".idx";
}

// Megatron-LM: megatron/core/datasets/indexed_dataset.py, DType.
std::int64_t bytes_of_dtype(int code) {
  switch (code) {
    case 3:  // int16
    case 8:  // uint16
      return 2;
    case 4:  // int32
      return 4;
    default:
      return 0;
  }
}

// nullopt for a .idx that is not of Megatron-LM.
std::optional<std::int64_t> width_in_index(const std::string& head, const std::string& place) {
  constexpr std::string_view kIndexMagic("MMIDIDX\0\0", 9), kOldMagic("TNTIDX\0\0", 8);
  constexpr std::size_t kDtype = 17;  // after magic and version
  if (head.starts_with(kOldMagic)) {
    throw core::DataError(place, "is an index of fairseq, whose tokens are not read",
                          "tokenize again, with scaletrain data tokenize or Megatron-LM");
  }
  core::refuse_placeholder(place, head);
  if (!head.starts_with(kIndexMagic)) return std::nullopt;
  const int code = head.size() > kDtype ? static_cast<unsigned char>(head[kDtype]) : 0;
  if (const std::int64_t bytes = bytes_of_dtype(code)) return bytes;
  throw core::DataError(
      place, fmt::format("says that its .bin has values of Megatron-LM's type {}", code),
      "tokens are read as int16, uint16 or int32 (types 3, 8 and 4): write them again");
}

std::optional<KnownWidth> known_width(const std::string& path, const WidthSources& sources) {
  if (sources.card != nullptr) {
    const auto card = token_card_path(path);
    return KnownWidth{sources.card->token_bytes, core::base_name(card.value_or(path))};
  }
  if (!sources.read_head) return std::nullopt;
  const std::string index = index_path(path);
  const auto head = sources.read_head(index);
  const auto bytes = head ? width_in_index(*head, core::shown_path(index)) : std::nullopt;
  if (!bytes) return std::nullopt;
  return KnownWidth{*bytes, core::base_name(index)};
}

std::uint64_t number_at(const std::vector<std::byte>& bytes, std::int64_t number,
                        std::int64_t width) {
  std::uint64_t value = 0;  // little-endian, as the machine is
  std::memcpy(&value, bytes.data() + number * width, static_cast<std::size_t>(width));
  return value;
}

// True if the bytes, read as tokens of `width` bytes, are tokens of the model, and not all 0.
bool reads_as(const std::vector<std::byte>& bytes, std::int64_t width, std::int64_t vocab_size) {
  const std::int64_t count = std::ssize(bytes) / width;
  const auto most = static_cast<std::uint64_t>(vocab_size > 0 ? vocab_size : kMostOf16Bits);
  if (count < kFewestTokens) return false;
  bool all_zero = true;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint64_t token = number_at(bytes, i, width);
    if (token >= most) return false;
    all_zero = all_zero && token == 0;
  }
  return !all_zero;
}

// Refuses tokens of twice the width or more, whose upper halves would be read as tokens 0.
void check_width(const std::string& name, std::int64_t file_bytes, std::int64_t token_bytes,
                 std::int64_t vocab_size, const ReadAt& read) {
  constexpr std::int64_t kWidest = 8;
  std::vector<std::byte> bytes(
      static_cast<std::size_t>(std::min(file_bytes, kBytesLookedAt) / kWidest * kWidest));
  read(0, bytes);
  for (std::int64_t width = kWidest; width > token_bytes; width /= 2) {
    if (file_bytes % width != 0 || !reads_as(bytes, width, vocab_size)) continue;
    throw core::DataError(
        name,
        fmt::format("has tokens of {} bits, and is read as tokens of {} bits: {} of {} would be "
                    "padding",
                    8 * width, 8 * token_bytes, width / token_bytes - 1, width / token_bytes),
        width == 4 ? R"(set "token_bytes": 4 in "data")"
                   : R"(write them as 32 bits, tokens.astype("uint32").tofile(FILE), and set )"
                     R"("token_bytes": 4 in "data")");
  }
}

std::int64_t raw_width(const std::string& path, const WidthSources& sources) {
  const std::string name = core::shown_path(path);
  const auto known = known_width(path, sources);
  if (known && sources.recipe != 0 && known->bytes != sources.recipe) {
    throw core::RecipeError("/data/token_bytes",
                            fmt::format("is {}, and {} has tokens of {} bytes, as {} says",
                                        sources.recipe, name, known->bytes, known->from),
                            "leave it out");
  }
  if (known) return known->bytes;
  if (sources.recipe != 0) return sources.recipe;
  if (sources.vocab_size <= kMostOf16Bits) return 2;
  throw core::RecipeError(
      "/data/token_bytes",
      fmt::format("is left out, and neither a card nor an index beside {} says whether its tokens "
                  "have 16 or 32 bits; /model/vocab_size is {}",
                  name, sources.vocab_size),
      "set 4 for tokens of 32 bits, 2 for tokens of 16 bits");
}

}  // namespace

std::vector<TokenRun> find_tokens_of_width(const std::string& path, std::int64_t file_bytes,
                                           const WidthSources& sources, const ReadAt& read) {
  const std::string name = core::shown_path(path);
  if (!is_raw_tokens(name, file_bytes, read)) return find_tokens(name, file_bytes, 2, read);
  const std::int64_t width = raw_width(path, sources);
  auto runs = find_tokens(name, file_bytes, width, read);
  if (sources.card == nullptr) check_width(name, file_bytes, width, sources.vocab_size, read);
  return runs;
}

}  // namespace scaletrain::format
