// Activations that lie in the host's memory from forward to backward.
//
// What operations save is copied block by block, each once however many of them save it, so that
// backward gets the same values in the same layout. On a device the copies run on a stream of their
// own, into pinned memory, and backward fetches some blocks ahead; on a CPU a copy of a block takes
// its place.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Stream.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "lib/engine/saved_tensors.h"

namespace scaletrain::engine {

class ActivationOffload {
 public:
  // For units that run on `device`; `lasting` tensors, the model's, stay where they are.
  ActivationOffload(at::Device device, const std::vector<at::Tensor>& lasting);

  // Hooks for a SavedTensorsScope of one forward, whose backward may come when this is gone.
  MakeHooks hooks();

  // That went to the host so far.
  std::int64_t moved_bytes() const { return *moved_bytes_; }

  // What one forward has moved: blocks of memory.
  class Pass;
  struct Block;

 private:
  at::Device device_;
  std::optional<c10::Stream> copies_;                      // of a device
  std::shared_ptr<const std::vector<const void*>> stays_;  // memory of `lasting`, sorted
  std::shared_ptr<std::int64_t> moved_bytes_ = std::make_shared<std::int64_t>(0);
};

}  // namespace scaletrain::engine
