// Predicts the time of a training step from its FLOPs, the bytes of its collectives and the speeds
// of a device.
#pragma once

#include <cstdint>
#include <vector>

namespace scaletrain::launcher {

// Work of one rank in a step.
struct StepWork {
  double forward_flops = 0, backward_flops = 0;  // backward includes recomputation
  double optimizer_bytes = 0;                    // read and written by the update
  double idle_share = 0;                         // pipeline bubble, share of the compute time
};

// Collectives of one kind in one group.
struct StepExchange {
  std::int64_t calls = 0;
  double sent_bytes = 0;  // by this rank, all calls together
  bool between_nodes = false;
  bool overlaps = false;  // runs while the rank computes
};

// Cost of a message: latency_s + bytes / bytes_per_s.
struct LinkSpeed {
  double latency_s = 0, bytes_per_s = 0;
};

struct DeviceSpeed {
  double flops_per_s = 0;         // peak times measured efficiency
  double memory_bytes_per_s = 0;  // memory bandwidth
  LinkSpeed inside, between;      // links inside a node and between nodes
};

// Seconds of one step.
struct StepTime {
  double forward = 0, backward = 0, idle = 0, optimizer = 0;
  double communication = 0;  // all collectives, one after the other
  double exposed = 0;        // exposed part, which computation does not hide

  double total() const { return forward + backward + idle + optimizer + exposed; }
};

// Collectives that overlap are hidden behind forward and backward, but for one call of each, which
// has nothing left to overlap with; the others are exposed in full.
StepTime predict_step_time(const StepWork& work, const std::vector<StepExchange>& exchanges,
                           const DeviceSpeed& speed);

}  // namespace scaletrain::launcher
