// Bytes that differ wherever a range could be misplaced, quick to make without optimisation too.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>

namespace scaletrain::test {

// The period is a prime number, so that no page, sector or piece is like the one before it.
inline void fill_patterned(std::span<std::byte> bytes, unsigned seed) {
  constexpr std::size_t kPeriod = 40'009;
  const std::size_t first = std::min(bytes.size(), kPeriod);
  for (std::size_t i = 0; i < first; ++i) {
    bytes[i] = static_cast<std::byte>(i * 13 + i / 251 + seed * 101);
  }
  for (std::size_t done = first; done < bytes.size();) {
    const std::size_t count = std::min(done, bytes.size() - done);
    std::memcpy(bytes.data() + done, bytes.data(), count);
    done += count;
  }
}

inline bool same_bytes(std::span<const std::byte> one, std::span<const std::byte> other) {
  return one.size() == other.size() &&
         (one.empty() || std::memcmp(one.data(), other.data(), one.size()) == 0);
}

}  // namespace scaletrain::test
