#include "lib/format/key_set.h"

#include <algorithm>
#include <utility>

#include "lib/core/text/hash.h"

namespace scaletrain::format {
namespace {

constexpr std::size_t kFirstSlots = 1024;

}  // namespace

bool KeySet::insert(std::string_view key) {
  if (2 * count_ >= slots_.size()) grow();
  const bool is_new = place(std::max<std::uint64_t>(core::xxh3_64(key), 1));
  count_ += is_new ? 1 : 0;
  return is_new;
}

bool KeySet::place(std::uint64_t hash) {
  std::size_t at = hash & (slots_.size() - 1);
  while (slots_[at] != 0) {
    if (slots_[at] == hash) return false;
    at = (at + 1) & (slots_.size() - 1);
  }
  slots_[at] = hash;
  return true;
}

void KeySet::grow() {
  const std::vector<std::uint64_t> old = std::exchange(
      slots_, std::vector<std::uint64_t>(std::max<std::size_t>(2 * slots_.size(), kFirstSlots)));
  for (const std::uint64_t hash : old) {
    if (hash != 0) place(hash);
  }
}

}  // namespace scaletrain::format
