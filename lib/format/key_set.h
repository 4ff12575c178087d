// Set of the keys seen in a shard. Stores hashes only: a million keys take 16 MB at most.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace scaletrain::format {

// Hash set of XXH3-64 values with open addressing, at most half full. Two keys with the same hash
// count as one.
class KeySet {
 public:
  // Returns false if the key was present.
  bool insert(std::string_view key);

 private:
  bool place(std::uint64_t hash);
  void grow();

  std::vector<std::uint64_t> slots_;  // size is a power of two; 0: empty
  std::size_t count_ = 0;
};

}  // namespace scaletrain::format
