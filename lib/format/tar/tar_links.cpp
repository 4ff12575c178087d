#include "lib/format/tar/tar_links.h"

#include <cstddef>
#include <span>
#include <string_view>
#include <utility>

#include "lib/core/text/hash.h"
#include "lib/core/text/text.h"
#include "lib/format/tar/tar_header.h"

namespace scaletrain::format {
namespace {

constexpr std::size_t kLinkType = 156, kLinkName = 157, kLinkNameBytes = 100;  // in a header block

std::string_view up_to_nul(std::string_view text) { return text.substr(0, text.find('\0')); }

// Returns the link target in the records of a pax extended header, "LENGTH KEY=VALUE\n", which were
// already validated; "" if there is none.
std::string pax_target(std::string_view records) {
  constexpr std::string_view kKey = "linkpath=";
  std::string target;
  while (!records.empty()) {
    const std::size_t space = records.find(' ');
    const auto length = core::parse_number<std::size_t>(records.substr(0, space));
    if (!length || *length > records.size() || *length < space + 2) break;
    const std::string_view record = records.substr(space + 1, *length - space - 2);
    if (record.starts_with(kKey)) target = record.substr(kKey.size());
    records.remove_prefix(*length);
  }
  return target;
}

}  // namespace

std::optional<TarLink> TarLinks::link_of(const TarMember& member) const {
  const auto text_at = [&](std::int64_t offset, std::int64_t bytes) {
    std::string text(static_cast<std::size_t>(bytes), '\0');
    read_(offset, std::as_writable_bytes(std::span(text)));
    return text;
  };
  const std::string block = text_at(member.data - kTarBlock, kTarBlock);
  if (block[kLinkType] != '1' && block[kLinkType] != '2') return std::nullopt;
  TarLink link{block[kLinkType] == '1',
               std::string(up_to_nul(std::string_view(block).substr(kLinkName, kLinkNameBytes)))};
  // Extended headers precede the member's own; each has a block and its data.
  for (std::int64_t at = member.begin; at < member.data - kTarBlock;) {
    const std::string before = text_at(at, kTarBlock);
    const std::int64_t bytes = parse_tar_header(std::as_bytes(std::span(before))).bytes;
    const std::int64_t data = at + kTarBlock;
    if (before[kLinkType] == 'K') link.target = up_to_nul(text_at(data, bytes));
    if (before[kLinkType] == 'x') {
      std::string target = pax_target(text_at(data, bytes));
      if (!target.empty()) link.target = std::move(target);
    }
    at = data + (bytes + kTarBlock - 1) / kTarBlock * kTarBlock;
  }
  return link;
}

std::optional<TarMember> TarLinks::resolve(const TarMember& member, const TarLink& link) {
  if (!link.hard) return std::nullopt;
  if (!was_read_) read_places();
  const auto found = places_.find(core::xxh3_64(link.target));
  if (found == places_.end() || found->second.data > member.begin) return std::nullopt;
  TarMember file = member;
  file.regular = true;
  file.begin = found->second.begin;
  file.data = found->second.data;
  file.bytes = found->second.bytes;
  return file;
}

void TarLinks::read_places() {
  was_read_ = true;
  TarReader reader(name_, file_bytes_, read_);
  TarMember member;
  while (reader.next(member)) {
    if (member.regular)
      places_.emplace(core::xxh3_64(member.path), Place{member.begin, member.data, member.bytes});
  }
}

}  // namespace scaletrain::format
