// A checkpoint's contents as they are now, in the host's memory, while training changes them.
#pragma once

#include <c10/core/Event.h>

#include <optional>

#include "lib/checkpoint/contents.h"

namespace scaletrain::checkpoint {

// The memory of one copy, used again by the next: a page that is touched for the first time costs
// more than to copy it.
class HostCopies {
 public:
  // Copies all tensors of `contents`, those of a device to pinned memory on a stream of their own:
  // what is queued from here on waits for that, the host does not.
  void take(const Contents& contents);

  // What was copied, when all of it has arrived.
  const Contents& contents();

 private:
  Contents copies_;
  std::optional<c10::Event> arrived_;  // of a device's copies
};

}  // namespace scaletrain::checkpoint
