// Key-value store for texts that the processes of a job share.
#pragma once

#include <string>

namespace scaletrain::core {

// May be used by several threads. Both functions throw StoppedError if the store is lost.
class Board {
 public:
  virtual ~Board() = default;

  virtual void put(const std::string& key, const std::string& text) = 0;
  // Returns the text that any process has stored last under `key`; "" if none has.
  virtual std::string get(const std::string& key) = 0;
};

}  // namespace scaletrain::core
