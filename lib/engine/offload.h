// Activation offload: keeps activations in CPU memory between forward and backward.
//
// Tensors that operations save for backward are copied storage by storage, each once however many
// operations save it, so that backward gets the same values in the same layout. On a GPU the copies
// run on a side stream into pinned memory, and backward prefetches some storages; on a CPU a plain
// copy replaces the storage.
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
  // For units that run on `device`; `lasting` tensors, such as parameters, are never offloaded.
  ActivationOffload(at::Device device, const std::vector<at::Tensor>& lasting);

  // Hooks for a SavedTensorsScope of one forward; its backward may outlive this object.
  MakeHooks hooks();

  // Bytes copied to CPU memory so far.
  std::int64_t moved_bytes() const { return *moved_bytes_; }

  // The storages that one forward has offloaded.
  class Pass;
  struct Block;

 private:
  at::Device device_;
  std::optional<c10::Stream> copies_;                      // side stream; none on the CPU
  std::shared_ptr<const std::vector<const void*>> stays_;  // storages of `lasting`, sorted
  std::shared_ptr<std::int64_t> moved_bytes_ = std::make_shared<std::int64_t>(0);
};

}  // namespace scaletrain::engine
