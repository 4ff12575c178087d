// Keys of imported samples, each once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/format/key_set.h"

namespace scaletrain::app {

// Takes 24 bytes a key at most.
class ImportKeys {
 public:
  // `source` is the file that the sample came from. Throws core::DataError naming this file and the
  // one that had the key before.
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
