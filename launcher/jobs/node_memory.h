// This node's memory for checkpoints of a run on several nodes (/checkpoint/replicate): workers of
// this node and of those before it in the ring put pieces there, and it outlives them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "launcher/place/placement.h"
#include "lib/replica/server.h"
#include "lib/replica/shelf.h"

namespace scaletrain::recipe {
struct Recipe;
}

namespace scaletrain::launcher {

class NodeMemory {
 public:
  // Of at most three quarters of what is available here. Workers of this node send to the next
  // `more` nodes too. Starts threads. Throws core::Error.
  NodeMemory(std::vector<std::string> addresses, std::int64_t more);

  // Where others find it (lib/replica/address.h).
  const std::string& address() const { return address_; }
  // The run goes on from `step`, -1: from its beginning, on nodes whose addresses are `all` by
  // rank. Returns those to which the workers of this one, `node`, send: its own first, as one text;
  // "": it is alone.
  std::string go_on(std::int64_t step, const std::vector<std::string>& all, int node);

 private:
  std::int64_t more_;
  replica::Shelf shelf_;
  replica::Server server_;
  std::string address_;
};

// Throws core::RecipeError where the job has not as many other nodes, and where launchers are tasks
// of Slurm's, which are no nodes.
void check_replicate(const recipe::Recipe& recipe, const Placement& placement);

// Where the nodes `all` of a job are of no use to each other.
void warn_of_memory(const std::vector<std::string>& all, bool one_host);

// Copies the newest that nodes have in memory, is newer than `beyond` and whole, into the run's
// folder, and logs from where; nullopt: there is none. Warns of what is damaged, and of nodes that
// do not answer. Throws core::StorageError where the folder cannot be written.
std::optional<std::filesystem::path> fetch_from_memory(const recipe::Recipe& recipe,
                                                       const std::vector<std::string>& replicas,
                                                       std::int64_t beyond);

}  // namespace scaletrain::launcher
