// All-gathers a block of parameters from the ranks' shards, which may be offloaded to CPU memory.
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
  // Communicates in `ranks`, which must outlive it; `from_host`: shards lie in CPU memory.
  PartGather(dist::Group& ranks, bool from_host);

  // Copies this rank's shard to where shards are kept; CPU copies of a GPU's shards are pinned, so
  // that transfers are direct.
  at::Tensor copy_of(const at::Tensor& part) const;

  // Fills `whole`, on the device, from each rank's `part`, which may have a wider dtype, and counts
  // the bytes sent. With `from_host` it waits for the shard's `update` and copies the shard to the
  // device first, on a side stream. The shard must not change before the copy is over, which
  // waiting for this step's gradients ensures.
  dist::Pending gather(const at::Tensor& whole, const at::Tensor& part, units::HostUpdate* update);
  std::int64_t sent_bytes() const { return sent_bytes_; }

 private:
  dist::Pending send(const at::Tensor& whole, const at::Tensor& part);

  dist::Group& ranks_;
  bool from_host_;
  std::optional<c10::Stream> copies_;  // side stream for copies from CPU memory; none on the CPU
  std::int64_t sent_bytes_ = 0;
};

}  // namespace scaletrain::parallel
