// Backend that reads and writes parts of a file for AsyncFile (lib/core/disk/async_file.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace scaletrain::core {

struct AsyncPart {
  bool writes = false;
  std::byte* memory = nullptr;
  std::size_t bytes = 0;
  std::int64_t place = 0;   // in the file
  std::uint64_t range = 0;  // whose part it is
};

// Used by one thread at a time.
class AsyncQueue {
 public:
  virtual ~AsyncQueue() = default;

  // `part` stays until wait() has returned it. `is_direct`: the file is used past the page cache,
  // so that it is no work to begin.
  virtual void begin(AsyncPart& part, bool is_direct) = 0;

  // Waits for one of those that were begun. `result`: bytes, or an errno below zero.
  struct Done {
    AsyncPart* part;
    std::int64_t result;
  };
  virtual Done wait() = 0;
};

// io_uring of the kernel with room for `most` parts at a time; null, with errno, where there is
// none.
std::unique_ptr<AsyncQueue> make_ring_queue(int fd, std::size_t most);

// A thread that takes one part after the other; where there are no more threads, who begins.
std::unique_ptr<AsyncQueue> make_thread_queue(int fd);

}  // namespace scaletrain::core
