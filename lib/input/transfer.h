// Asynchronous copies of batches from the CPU to a device.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Stream.h>

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace scaletrain::input {

// Copies run on a side stream, ahead of computation that is already queued; computation that uses
// them waits for an event. The memory block may return to its pool at once: LibTorch reuses pinned
// memory only after the event of its copy.
class Transfer {
 public:
  explicit Transfer(at::Device device);

  // Copies `host`, contiguous tensors in `block` of a pool of lib/dist/device.h, to the device; on
  // a CPU returns them unchanged. For one thread, on whose current stream the copies are used.
  std::vector<at::Tensor> operator()(std::vector<at::Tensor> host,
                                     std::span<const std::byte> block) const;

 private:
  at::Device device_;
  // One stream for all copies, as LibTorch caches freed memory for the stream that allocated it.
  std::optional<c10::Stream> copies_;  // set if `device_` is not a CPU
};

}  // namespace scaletrain::input
