// Key-value store for texts that the processes of a job share.
#pragma once

#include <string>

namespace scaletrain::core {

// Several threads may use one. Both throw StoppedError where the board is lost.
class Board {
 public:
  virtual ~Board() = default;

  virtual void put(const std::string& key, const std::string& text) = 0;
  // Returns the text that any process has stored last under `key`; "" where none has.
  virtual std::string get(const std::string& key) = 0;
};

}  // namespace scaletrain::core
