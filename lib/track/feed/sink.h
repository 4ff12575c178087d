// Interface of a destination: an experiment tracker that receives the records of a run, or a
// receiver of its events.
#pragma once

#include <span>

#include "lib/core/error.h"

namespace scaletrain::track {

// The destination takes nothing now, but may do so later: a server that does not answer, a locked
// database. The place is its address or path.
struct TryAgain : core::StorageError {
  using StorageError::StorageError;
};

template <class Item>
class Sink {
 public:
  virtual ~Sink() = default;

  // Writes items in the order of their file. Throws TryAgain: it is called with the same items
  // later. Throws core::Error: none of the items counts as written.
  virtual void write(std::span<const Item> items) = 0;

  // Called when the run has ended and all items were written, again after TryAgain. Throws
  // core::Error.
  virtual void finish() {}

  // Descriptor of a socket: serve() is called when it is readable; -1: there is none.
  virtual int socket() const { return -1; }
  virtual void serve() {}
};

}  // namespace scaletrain::track
