// Makes the keys of new samples unique.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <unordered_map>

#include "lib/core/text/hash.h"
#include "lib/format/key_set.h"

namespace scaletrain::app {

class UniqueKeys {
 public:
  // Returns `key`, with -2, -3, ... at its end if it was returned before.
  std::string take(const std::string& key) {
    if (keys_.insert(key)) return key;
    // Last number tried for this key, so that many keys of one name stay fast.
    int& next = next_.try_emplace(core::xxh3_64(key), 2).first->second;
    while (true) {
      std::string numbered = fmt::format("{}-{}", key, next++);
      if (keys_.insert(numbered)) return numbered;
    }
  }

 private:
  format::KeySet keys_;
  std::unordered_map<std::uint64_t, int> next_;  // hash of a repeated key -> next number
};

}  // namespace scaletrain::app
