#include "app/tokenizer/rule_trie.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace scaletrain::app {
namespace {

constexpr std::size_t kSizeBytes = 4, kUnitBytes = 4;
// 16 MiB; the rules of NFKC with case folding have 0.3 MiB. It bounds the time of the check.
constexpr std::size_t kMostUnits = std::size_t{1} << 22U;
constexpr int kMostResults = 32;
constexpr std::size_t kMostNormalizedBytes = 256;

std::uint32_t little_endian(std::string_view bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    value |= static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
  }
  return value;
}

// A unit is a node with the byte that leads to it, or the value of the node before.
struct Unit {
  std::uint32_t bits = 0;

  bool is_value() const { return (bits >> 31U) != 0; }
  std::uint32_t value() const { return bits & 0x7fffffffU; }
  bool has_value() const { return ((bits >> 8U) & 1U) != 0; }
  // No byte, of a value.
  std::uint32_t label() const { return bits & 0x800000ffU; }
  std::uint32_t offset() const { return (bits >> 10U) << ((bits & 0x200U) >> 6U); }
};

class Trie {
 public:
  explicit Trie(std::string_view bytes) : units_(bytes.size() / kUnitBytes) {
    for (std::size_t i = 0; i < units_.size(); ++i) {
      units_[i].bits = little_endian(bytes, i * kUnitBytes);
    }
  }

  std::optional<std::string> damage(std::size_t string_bytes) const;
  // Call only for a trie without damage().
  bool has_cycle_or_long_path() const;

 private:
  // The child by byte b of the node is at base ^ b.
  std::size_t base(std::size_t unit) const { return unit ^ units_[unit].offset(); }

  std::vector<Unit> units_;
};

// Checks every unit, even if no node leads to it: a search reads the units of all 256 byte
// positions before it compares their labels.
std::optional<std::string> Trie::damage(std::size_t string_bytes) const {
  for (std::size_t i = 0; i < units_.size(); ++i) {
    if (i > 0 && units_[i].is_value()) continue;
    if ((base(i) | 0xffU) >= units_.size()) {
      return fmt::format("unit {} of its trie points outside the trie", i);
    }
    if (units_[i].has_value() && units_[base(i)].value() >= string_bytes) {
      return fmt::format("unit {} of its trie points outside the normalized strings", i);
    }
  }
  return std::nullopt;
}

// Depth first from the root. A node can have several parents, as equal ends are stored once.
bool Trie::has_cycle_or_long_path() const {
  constexpr std::int8_t kNew = -1, kOpen = -2;
  struct Visit {
    std::size_t unit = 0;
    std::uint32_t next_byte = 0;
    int most = 0;  // values on one path below it
  };
  std::vector<std::int8_t> most(units_.size(), kNew);  // values on one path from it
  std::vector<Visit> path{Visit{}};
  most[0] = kOpen;
  while (!path.empty()) {
    Visit& last = path.back();
    if (last.next_byte < 256) {
      const std::uint32_t byte = last.next_byte++;
      const std::size_t child = base(last.unit) ^ byte;
      if (units_[child].label() != byte) continue;
      if (most[child] == kOpen) return true;
      if (most[child] != kNew) {
        last.most = std::max<int>(last.most, most[child]);
        continue;
      }
      most[child] = kOpen;
      path.push_back({.unit = child});
      continue;
    }
    const int count = last.most + (units_[last.unit].has_value() ? 1 : 0);
    if (count > kMostResults) return true;
    most[last.unit] = static_cast<std::int8_t>(count);
    path.pop_back();
    if (!path.empty()) path.back().most = std::max(path.back().most, count);
  }
  return false;
}

std::size_t longest_string(std::string_view strings) {
  std::size_t longest = 0;
  for (std::size_t begin = 0; begin < strings.size();) {
    const std::size_t end = strings.find('\0', begin);
    longest = std::max(longest, end - begin);
    begin = end + 1;
  }
  return longest;
}

}  // namespace

std::optional<std::string> damage_of_rules(std::string_view rules) {
  if (rules.empty()) return std::nullopt;
  if (rules.size() < kSizeBytes) return fmt::format("has {} bytes", rules.size());
  const std::size_t trie_bytes = little_endian(rules, 0);
  const std::size_t rest = rules.size() - kSizeBytes;
  if (trie_bytes == 0 || trie_bytes % kUnitBytes != 0 || trie_bytes > rest) {
    return fmt::format("gives its trie {} of the {} bytes that follow", trie_bytes, rest);
  }
  if (trie_bytes > kMostUnits * kUnitBytes) {
    return fmt::format("has a trie of {} bytes; at most {} are allowed", trie_bytes,
                       kMostUnits * kUnitBytes);
  }
  const std::string_view strings = rules.substr(kSizeBytes + trie_bytes);
  if (!strings.ends_with('\0')) return "has normalized strings without a zero byte at the end";
  if (longest_string(strings) > kMostNormalizedBytes) {
    return fmt::format("has a normalized string of more than {} bytes", kMostNormalizedBytes);
  }
  const Trie trie(rules.substr(kSizeBytes, trie_bytes));
  if (auto damage = trie.damage(strings.size())) return damage;
  if (!trie.has_cycle_or_long_path()) return std::nullopt;
  return fmt::format("has a trie with a cycle, or with more than {} rules for one text",
                     kMostResults);
}

}  // namespace scaletrain::app
