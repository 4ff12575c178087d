// Where the processes of a job put down texts for each other.
#pragma once

#include <string>

namespace scaletrain::core {

// Several threads may use one. Both throw StoppedError where the board is lost.
class Board {
 public:
  virtual ~Board() = default;

  virtual void put(const std::string& key, const std::string& text) = 0;
  // What any process has put there last; "" where none has.
  virtual std::string get(const std::string& key) = 0;
};

}  // namespace scaletrain::core
