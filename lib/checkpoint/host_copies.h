// Snapshot of a checkpoint's contents in host memory, so that training may change the originals.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>

#include <atomic>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "lib/checkpoint/contents.h"
#include "lib/checkpoint/tensors.h"

namespace scaletrain::checkpoint {

// Memory of one snapshot, reused by the next: touching a new page for the first time costs more
// than copying it.
class HostCopies {
 public:
  // Allocates memory for all tensors of `contents` and copies them. If `contents.stands`,
  // only kPerRank files are copied at once; tensors of the other files must not change until
  // finish() returns. Device tensors are copied to pinned memory on a separate stream, without
  // waiting on the host.
  void begin(const Contents& contents);
  // Copies the rest, concurrently with a caller of contents(). Work queued on the device's stream
  // after this call waits for all of its copies.
  void finish();

  // Waits until every copy has arrived, then returns the copies. Copies on this thread if needed;
  // call it on another thread than the other functions.
  const Contents& contents();

 private:
  // A range of a tensor's bytes that one thread copies at a time.
  struct Run {
    std::span<const std::byte> from;
    std::byte* to;
  };

  void begin_on(at::Device device, const Contents& contents);
  void begin_files(const Contents& contents, bool early);
  bool add_runs(const at::Tensor& tensor, const at::Tensor& copy);
  void copy_runs();  // may be called from several threads
  void await_runs();
  void copy_all_runs();  // uses all ATen threads

  Contents copies_;
  std::vector<at::Tensor> from_;  // sources, read until finish()
  std::vector<Run> runs_;
  std::atomic<std::size_t> next_ = 0, done_ = 0;  // indices into runs_
  std::optional<c10::Event> arrived_;             // recorded after a device's copies
};

}  // namespace scaletrain::checkpoint
