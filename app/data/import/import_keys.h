// Checks that keys of imported samples are unique.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/format/key_set.h"

namespace scaletrain::app {

// Uses at most 24 bytes per key.
class ImportKeys {
 public:
  // `source`: file of the sample. Throws core::DataError naming this file and the one with the same
  // key.
  void insert(const std::string& key, const std::string& source);

 private:
  struct Source {
    std::string name;
    std::size_t first = 0;  // number of its first key
  };

  [[noreturn]] void refuse(const std::string& key, const std::string& source) const;

  format::KeySet keys_;
  std::vector<std::uint64_t> hashes_;  // XXH3-64 of each key, in order
  std::vector<Source> sources_;
};

}  // namespace scaletrain::app
