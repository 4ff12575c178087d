// Host batches on their way to a device: the host waits for none of their copies.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Stream.h>

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace scaletrain::input {

// On a device the copies run on a stream of their own and pass the computation that is queued; what
// is computed with them is queued behind an event. The block may be given back to its pool at once:
// LibTorch hands pinned memory out again when the event of its copy has passed.
class Transfer {
 public:
  explicit Transfer(at::Device device);

  // `host`, contiguous tensors whose memory is in `block` of a pool of lib/dist/device.h, on the
  // device; on a CPU these very tensors. For one thread, whose current stream computes with them.
  std::vector<at::Tensor> operator()(std::vector<at::Tensor> host,
                                     std::span<const std::byte> block) const;

 private:
  at::Device device_;
  // One for all copies: LibTorch keeps the memory of freed tensors for the stream they came from.
  std::optional<c10::Stream> copies_;  // used on a device
};

}  // namespace scaletrain::input
