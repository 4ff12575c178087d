#include "lib/train/loop/node_copies.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>

#include "lib/core/disk/disk.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/format/checkpoint/checkpoint_folder.h"
#include "lib/replica/secret.h"
#include "lib/train/run/state_shards.h"
#include "lib/train/tune/memory_advice.h"

namespace scaletrain::train {
namespace {

constexpr int kSavesHeld = 2;  // the newest that is whole, and one more (lib/replica/shelf.h)

std::string key_of(int node) { return fmt::format("node/{}", node); }

// Returns the most bytes of peer checkpoints that a node holds.
std::int64_t bytes_of_node(const Run& run, std::size_t targets, int nodes, bool all_write) {
  const std::int64_t whole = bytes_of_state(run) * kSavesHeld;
  if (!all_write) return whole;
  return (whole + nodes - 1) / nodes * static_cast<std::int64_t>(targets);
}

// A node that does not answer now may do later: nullopt, with a warning.
std::optional<std::int64_t> most_bytes_of(replica::Peer& node) {
  try {
    return node.list().most_bytes;
  } catch (const core::StoppedError& error) {
    core::warn("{}: {}; it gets no copies of checkpoints", error.place(), error.found());
    return std::nullopt;
  }
}

void check_room(const replica::Address& node, std::int64_t needed) {
  const std::atomic<bool> gives_up = false;
  replica::Peer peer(node, gives_up);
  const std::optional<std::int64_t> most = most_bytes_of(peer);
  if (!most || needed <= *most) return;
  throw core::OutOfMemoryError(
      peer.place(),
      fmt::format("copies of two checkpoints take {} of it, and three quarters of what is free "
                  "are {}",
                  megabytes(needed), megabytes(*most)),
      "use nodes with more memory, or: --set checkpoint.replicate=null");
}

}  // namespace

NodeCopies::NodeCopies(Run& run, Reporter& reporter, const core::WorkerEnv& env, bool all_write)
    : reporter_(reporter),
      rank_(env.rank),
      nodes_(env.group_world_size),
      secret_(replica::read_secret_of(env.secret_fd)),
      targets_(replica::parse_addresses(env.replicas, secret_)),
      disk_(core::system_disk(), targets_) {
  if (!all_write) return;
  board_ = run.group->open_board("replicas");
  if (env.local_rank == 0) board_->put(key_of(env.group_rank), replica::to_text(targets_.front()));
}

void NodeCopies::give_up() {
  gives_up_ = true;
  disk_.give_up();
}

void NodeCopies::warn_of(const std::vector<std::string>& lacks) {
  if (lacks.empty()) {
    has_warned_ = false;
    return;
  }
  if (std::exchange(has_warned_, true)) return;
  for (const std::string& lack : lacks) core::warn("{}", lack);
}

// The nodes that have something of each checkpoint.
std::vector<replica::Peer> NodeCopies::holders() {
  std::vector<replica::Address> addresses = targets_;
  if (board_) {
    addresses.clear();
    for (int node = 0; node < nodes_; ++node) {
      std::vector<replica::Address> one =
          replica::parse_addresses(board_->get(key_of(node)), secret_);
      std::move(one.begin(), one.end(), std::back_inserter(addresses));
    }
  }
  std::vector<replica::Peer> peers;
  peers.reserve(addresses.size());
  for (const replica::Address& address : addresses) peers.emplace_back(address, gives_up_);
  return peers;
}

void NodeCopies::published(const checkpoint::Saved& saved) {
  std::vector<std::string> lacks;
  for (const std::string& lack : disk_.lacks()) {
    lacks.push_back(
        fmt::format("{}; it has no copy of the checkpoint of step {}", lack, saved.step));
  }
  if (rank_ == 0) {
    try {
      std::vector<replica::Peer> nodes = holders();
      const replica::Replicated copies =
          replica::finish_save(nodes, disk_.save(), format::read_manifest(saved.path));
      const std::lock_guard lock(mutex_);
      done_.emplace_back(saved.step, copies);
    } catch (const core::Error& error) {
      lacks.push_back(fmt::format("{}: {}; no copy of it counts", error.place(), error.found()));
    }
  }
  warn_of(lacks);
}

void NodeCopies::look() {
  std::vector<std::pair<std::int64_t, replica::Replicated>> done;
  {
    const std::lock_guard lock(mutex_);
    done.swap(done_);
  }
  for (const auto& [step, copies] : done) reporter_.replicated(step, copies);
}

std::unique_ptr<NodeCopies> make_node_copies(Run& run, Reporter& reporter,
                                             const core::WorkerEnv& env, bool all_write) {
  if (env.replicas.empty() || (env.rank != 0 && !all_write)) return nullptr;
  const std::vector<replica::Address> targets =
      replica::parse_addresses(env.replicas, replica::read_secret_of(env.secret_fd));
  const std::int64_t bytes = bytes_of_node(run, targets.size(), env.group_world_size, all_write);
  if (env.local_rank == 0) {
    for (const replica::Address& node : targets) check_room(node, bytes);
  }
  reporter.note(fmt::format("checkpoints are copied to the memory of {} nodes: at most {} of each",
                            all_write ? env.group_world_size : static_cast<int>(targets.size()),
                            megabytes(bytes)));
  return std::make_unique<NodeCopies>(run, reporter, env, all_write);
}

}  // namespace scaletrain::train
