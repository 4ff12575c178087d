// How a block of parameters comes together from the parts of ranks, which may lie in the host's
// memory.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Stream.h>

#include <cstdint>
#include <optional>

#include "lib/dist/group.h"
#include "lib/units/host_update.h"

namespace scaletrain::parallel {

class PartGather {
 public:
  // Among `ranks`, which outlive it; `from_host`: their parts lie in the host's memory.
  PartGather(dist::Group& ranks, bool from_host);

  // A copy of this rank's part where it belongs: pinned in the memory of a device's host, so that
  // copies need no detour.
  at::Tensor copy_of(const at::Tensor& part) const;

  // Fills `whole`, on the device, from each rank's `part`, which may have a longer type; counts
  // what this rank sends. From the host's memory, behind the part's `update`, by way of a copy on
  // the device, on a stream of its own: who changes the part next has waited for the gradients,
  // behind which all of it is over.
  dist::Pending gather(const at::Tensor& whole, const at::Tensor& part, units::HostUpdate* update);
  std::int64_t sent_bytes() const { return sent_bytes_; }

 private:
  dist::Pending send(const at::Tensor& whole, const at::Tensor& part);

  dist::Group& ranks_;
  bool from_host_;
  std::optional<c10::Stream> copies_;  // of a device, from the host's memory
  std::int64_t sent_bytes_ = 0;
};

}  // namespace scaletrain::parallel
