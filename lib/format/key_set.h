// Set of the keys seen in a shard. Stores hashes only: a million keys take 16 MB at most.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace scaletrain::format {

// XXH3-64 of each key in open addressing, half full at most. Two keys of one hash are one key.
class KeySet {
 public:
  // False where the key was there.
  bool insert(std::string_view key);

 private:
  bool place(std::uint64_t hash);
  void grow();

  std::vector<std::uint64_t> slots_;  // a power of two of them; 0 is empty
  std::size_t count_ = 0;
};

}  // namespace scaletrain::format
