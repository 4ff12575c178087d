// Peer-checkpoint store of this node (/checkpoint/replicate): workers of this node and of the
// previous ones in the ring send checkpoints to it, and it outlives them.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "launcher/place/placement.h"
#include "lib/core/descriptor.h"
#include "lib/core/process/beat.h"
#include "lib/replica/server.h"
#include "lib/replica/shelf.h"

namespace scaletrain::recipe {
struct Recipe;
}

namespace scaletrain::launcher {

class NodeMemory {
 public:
  // Uses at most three quarters of the memory available here. Listens at `addresses` of this node,
  // or on loopback if there are none, for peers that know `secret`. Workers of this node send
  // checkpoints to the next `more` nodes too. Starts threads. Throws core::Error.
  NodeMemory(const std::vector<std::string>& addresses, std::int64_t more,
             const std::string& secret);
  ~NodeMemory() { ends_ = true; }
  NodeMemory(const NodeMemory&) = delete;
  NodeMemory& operator=(const NodeMemory&) = delete;

  const std::string& secret() const { return secret_; }
  int secret_fd() const { return secret_file_.get(); }  // an in-memory file, for workers

  // Address for the other nodes (lib/replica/address.h).
  const std::string& address() const { return address_; }
  // Call when the run starts from `step` (-1: from the beginning) on nodes with the addresses
  // `all`, by rank. Returns the addresses to which the workers of this node, `node`, send, its own
  // first, as one text; "": there are no other nodes.
  std::string go_on(std::int64_t step, const std::vector<std::string>& all, int node);
  // Call on node 0 after go_on(): rank 0 writes heartbeats to `beat_fd`, and from then on no node
  // accepts a checkpoint of a step that rank 0 has not begun.
  void follow_rank_0(int beat_fd);

 private:
  std::int64_t reported_step() const;

  std::int64_t more_;
  std::string secret_;
  core::Descriptor secret_file_;
  std::atomic<bool> ends_ = false;
  mutable std::mutex mutex_;
  // First step of the run; every step is accepted before the first attempt.
  std::int64_t from_step_ = std::numeric_limits<std::int64_t>::max();
  std::unique_ptr<core::BeatReader> rank_0_;  // on node 0
  std::string leader_;                        // address of node 0's memory, on the other nodes
  replica::Shelf shelf_;
  replica::Server server_;
  std::string address_;
};

// Peer-checkpoint store of a node with these `addresses`; on loopback if the nodes meet there.
// Null if the recipe does not ask for it, or there is no secret (launcher/jobs/job_secret.h).
// Throws core::Error.
std::unique_ptr<NodeMemory> make_node_memory(const recipe::Recipe& recipe,
                                             const Placement& placement,
                                             const std::vector<std::string>& addresses);

// Throws core::RecipeError if the job has fewer other nodes, or if launchers are Slurm tasks, which
// are not nodes.
void check_replicate(const recipe::Recipe& recipe, const Placement& placement);

// Warns if the nodes `all` of a job cannot protect each other's checkpoints.
void warn_of_memory(const std::vector<std::string>& all, bool one_host);

// Copies the newest complete checkpoint after step `beyond` from the nodes' memory into the run's
// folder, with the secret of this node's `memory`, and logs its source; nullopt if there is none or
// `memory` is null. Warns of damaged files and unresponsive nodes. Throws core::StorageError if the
// folder cannot be written.
std::optional<std::filesystem::path> fetch_from_memory(const recipe::Recipe& recipe,
                                                       const std::vector<std::string>& replicas,
                                                       const NodeMemory* memory,
                                                       std::int64_t beyond);

}  // namespace scaletrain::launcher
