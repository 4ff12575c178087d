// Simulates the network of a rank whose peers do not exist, to run one rank of a large mesh on one
// machine. Nothing is delivered; each communication takes the time that its bytes would take.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "lib/core/clock.h"

namespace scaletrain::dist {

// Cost model of a message: latency_s + bytes / bytes_per_s.
struct FakeLink {
  double latency_s = 0;
  double bytes_per_s = 0;  // 0: no time
};

// A rank's place, and the links to the others.
struct FakeJob {
  int rank = 0, world_size = 2;
  int ranks_per_node = 1;
  FakeLink inside = {},
           between = {};  // within a node; between nodes, for groups over several nodes
};

// Kinds of collectives.
enum class FakeKind { kAllReduce, kAllGather, kReduceScatter, kAllToAll, kBroadcast, kGather };

// A recorded collective.
struct FakeCall {
  FakeKind kind = FakeKind::kAllReduce;
  std::vector<int> ranks;  // participants, as ranks of the job
  int place = 0;           // this one's among them
  int root = -1;           // root of a broadcast or gather, as a place
  std::int64_t bytes = 0;  // size of the full tensor: all that is gathered or scattered
  double seconds = 0;      // duration
  double waited_s = 0;     // time a thread waited for the result
  core::SteadyTime asked{}, done{};
};

// Returns the bytes that each of `ranks` ranks sends in a ring algorithm, which NCCL and Gloo use
// for large tensors (Patarasuk and Yuan, Bandwidth Optimal All-reduce Algorithms, 2009).
double sent_bytes(FakeKind kind, std::int64_t bytes, int ranks);

// Calls of all groups of one rank, in issue order. Any thread may call it.
class FakeNetwork {
 public:
  explicit FakeNetwork(FakeJob job) : job_(std::move(job)) {}

  const FakeJob& job() const { return job_; }
  bool is_inside_node(const std::vector<int>& ranks) const;

  // Records a call without its times and returns its number. Calls of one group run in sequence:
  // `free` is the end of the group's last call, and is set to the end of this one.
  std::size_t ask(FakeCall call, core::SteadyTime& free);
  core::SteadyTime done(std::size_t call) const;
  void add_wait(std::size_t call, double seconds);

  std::size_t count() const;
  std::vector<FakeCall> calls() const;
  void forget();  // discards the recorded calls; none may be running

 private:
  const FakeJob job_;
  mutable std::mutex mutex_;
  std::vector<FakeCall> calls_;
};

}  // namespace scaletrain::dist
