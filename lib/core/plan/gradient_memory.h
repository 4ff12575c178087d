// Peak memory of gradients on one rank, for each way in which ranks reduce them. `explain`, `plan`,
// and the advice after running out of memory take their figures from here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace scaletrain::core {

// Peak bytes of gradients at two times of a step.
struct GradientPeak {
  std::int64_t backward = 0;  // in backward, while activations are in memory too
  std::int64_t exchange = 0;  // after the last backward, until the update

  GradientPeak& operator+=(const GradientPeak& other) {
    backward += other.backward;
    exchange += other.exchange;
    return *this;
  }
  bool operator==(const GradientPeak&) const = default;
};

// Data parallel (DDP): `bytes` of gradients, which accumulate and are averaged in the buckets.
GradientPeak bucketed_gradients(std::int64_t bytes);

// Pipeline stages and experts: `bytes` of gradients, averaged after the last backward from a copy.
GradientPeak late_gradients(std::int64_t bytes, bool has_peers);

// A flat block of a sharded model (lib/parallel/unit_flats.h), in bytes of its gradients.
struct GradientBlock {
  std::size_t first_unit = 0, last_unit = 0;  // units that use it; backward runs from the last
  std::int64_t whole = 0;                     // unsharded
  std::int64_t part = 0;                      // local shard
};

struct ShardedGradients {
  bool keeps_blocks = false;     // unsharded blocks wait for a step's last backward (ZeRO-1)
  bool accumulates = false;      // several micro-batches, or a pipeline
  bool reduces_as_bf16 = false;  // blocks of fp32 are converted before they are reduced
};

// ZeRO and FSDP: simulates the last backward of a step through `blocks`. A block is filled while
// the previous one is reduce-scattered, so two are in memory at a time. If blocks are kept and
// micro-batches accumulate, all of them are.
GradientPeak sharded_gradients(const std::vector<GradientBlock>& blocks,
                               const ShardedGradients& options);

}  // namespace scaletrain::core
