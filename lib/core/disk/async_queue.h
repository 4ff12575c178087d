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
  std::int64_t place = 0;   // offset in the file
  std::uint64_t range = 0;  // number of the range that it belongs to
};

// Used by one thread at a time.
class AsyncQueue {
 public:
  virtual ~AsyncQueue() = default;

  // `part` must stay valid until wait() has returned it. `is_direct`: the file bypasses the page
  // cache, so that starting a transfer takes no time.
  virtual void begin(AsyncPart& part, bool is_direct) = 0;

  // Waits for one of the transfers. `result`: bytes, or a negative errno.
  struct Done {
    AsyncPart* part;
    std::int64_t result;
  };
  virtual Done wait() = 0;
};

// Makes a queue on io_uring with room for `most` parts; null, with errno set, if the kernel does
// not provide it.
std::unique_ptr<AsyncQueue> make_ring_queue(int fd, std::size_t most);

// Makes a queue with a thread that processes one part after the other; if no thread can be started,
// begin() does the work.
std::unique_ptr<AsyncQueue> make_thread_queue(int fd);

}  // namespace scaletrain::core
