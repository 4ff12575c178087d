#include "lib/format/tar/tar_write.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "lib/format/tar/tar.h"

namespace scaletrain::format {
namespace {

constexpr std::size_t kPieceBytes = 1 << 20;
constexpr std::size_t kNameBytes = 100, kPrefixBytes = 155;
constexpr std::int64_t kMaxOctalSize = (std::int64_t{1} << 33) - 1;  // eleven digits

struct UstarName {
  std::string_view prefix, name;
};

// Splits the path at a slash into ustar's two fields; nullopt if it does not fit.
std::optional<UstarName> ustar_name(std::string_view path) {
  if (path.size() <= kNameBytes) return UstarName{"", path};
  const std::size_t slash = path.rfind('/', kPrefixBytes);
  if (slash == std::string_view::npos || slash == 0 || path.size() - slash - 1 > kNameBytes ||
      slash + 1 == path.size()) {
    return std::nullopt;
  }
  return UstarName{path.substr(0, slash), path.substr(slash + 1)};
}

std::string ustar_header(UstarName name, char type, std::int64_t bytes) {
  std::string block(static_cast<std::size_t>(kTarBlock), '\0');
  const auto put = [&block](std::size_t at, std::string_view text) {
    block.replace(at, text.size(), text);
  };
  put(0, name.name);
  put(100, "0000644");
  put(108, "0000000");
  put(116, "0000000");
  put(124, fmt::format("{:011o}", bytes));
  put(136, "00000000000");
  put(148, "        ");
  block[156] = type;
  put(257, std::string_view("ustar\00000", 8));
  put(345, name.prefix);
  unsigned sum = 0;
  for (const char c : block) sum += static_cast<unsigned char>(c);
  put(148, fmt::format("{:06o}", sum));
  block[154] = '\0';
  return block;
}

// "LENGTH KEY=VALUE\n", where LENGTH counts itself.
std::string pax_record(std::string_view key, std::string_view value) {
  const std::size_t rest = key.size() + value.size() + 3;
  std::size_t length = rest + 1;
  while (std::to_string(length).size() + rest != length) ++length;
  return fmt::format("{} {}={}\n", length, key, value);
}

// Returns the extended header's records that a member needs; usually none.
std::string pax_records(std::string_view path, std::int64_t bytes) {
  std::string records;
  if (!ustar_name(path)) records += pax_record("path", path);
  if (bytes > kMaxOctalSize) records += pax_record("size", std::to_string(bytes));
  return records;
}

std::int64_t padded(std::int64_t bytes) { return (bytes + kTarBlock - 1) / kTarBlock * kTarBlock; }

}  // namespace

TarWriter::TarWriter(std::function<void(std::span<const std::byte>)> sink)
    : sink_(std::move(sink)) {}

void TarWriter::add(std::string_view path, std::string_view bytes) {
  const auto size = static_cast<std::int64_t>(bytes.size());
  if (const std::string records = pax_records(path, size); !records.empty()) {
    append(ustar_header({"", "pax"}, 'x', static_cast<std::int64_t>(records.size())));
    append_padded(records);
  }
  const UstarName name = ustar_name(path).value_or(UstarName{"", path.substr(0, kNameBytes)});
  append(ustar_header(name, '0', std::min(size, kMaxOctalSize)));
  append_padded(bytes);
}

void TarWriter::finish() {
  append(std::string(static_cast<std::size_t>(2 * kTarBlock), '\0'));
  flush();
}

std::int64_t TarWriter::member_bytes(std::string_view path, std::int64_t bytes) {
  const auto records = static_cast<std::int64_t>(pax_records(path, bytes).size());
  return (records > 0 ? kTarBlock + padded(records) : 0) + kTarBlock + padded(bytes);
}

void TarWriter::append(std::string_view bytes) {
  buffer_ += bytes;
  bytes_ += static_cast<std::int64_t>(bytes.size());
  if (buffer_.size() >= kPieceBytes) flush();
}

void TarWriter::append_padded(std::string_view bytes) {
  const auto size = static_cast<std::int64_t>(bytes.size());
  append(bytes);
  append(std::string(static_cast<std::size_t>(padded(size) - size), '\0'));
}

void TarWriter::flush() {
  sink_(std::as_bytes(std::span(buffer_)));
  buffer_.clear();
}

}  // namespace scaletrain::format
