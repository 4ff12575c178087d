// Where a rank of a test waits until another lets it go on.
#pragma once

#include <unistd.h>

#include <stdexcept>

#include "lib/core/descriptor.h"

namespace scaletrain::testing {

// Made before the ranks are forked; closed until one of them opens it, for one that waits.
class Gate {
 public:
  void open() const {
    if (write(pipe_.write.get(), "!", 1) != 1) throw std::runtime_error("a gate stays closed");
  }
  void wait() const {
    char byte = 0;
    if (read(pipe_.read.get(), &byte, 1) != 1) throw std::runtime_error("a gate is gone");
  }

 private:
  core::Pipe pipe_ = core::make_pipe();
};

}  // namespace scaletrain::testing
