// Peer checkpoints of a run (/checkpoint/replicate): everything written to a checkpoint is also
// sent to the launcher of this node and to those of the next nodes.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "lib/checkpoint/saver.h"
#include "lib/core/job/board.h"
#include "lib/core/job/worker_env.h"
#include "lib/replica/finish.h"
#include "lib/replica/sending_disk.h"
#include "lib/train/loop/reporter.h"
#include "lib/train/run/run.h"

namespace scaletrain::train {

class NodeCopies {
 public:
  // `all_write`: each rank writes a share of each checkpoint, otherwise rank 0 all of it.
  NodeCopies(Run& run, Reporter& reporter, const core::WorkerEnv& env, bool all_write);

  // Returns the disk through which this rank writes checkpoints.
  core::Disk& disk() { return disk_; }
  // Called when this rank has written its part of a checkpoint; on rank 0, when all ranks have: the
  // peer copies are then complete, or it warns. For the saver, on the writing thread.
  void published(const checkpoint::Saved& saved);

  // Reports completed peer checkpoints.
  void look();
  // Ends all waits for nodes.
  void give_up();

 private:
  void warn_of(const std::vector<std::string>& lacks);
  std::vector<replica::Peer> holders();

  Reporter& reporter_;
  const int rank_, nodes_;
  const std::string secret_;
  const std::vector<replica::Address> targets_;  // nodes this rank writes to, its own first
  replica::SendingDisk disk_;
  std::shared_ptr<core::Board> board_;  // the nodes' addresses; null: rank 0 writes all
  std::atomic<bool> gives_up_ = false;
  bool has_warned_ = false;  // has warned of an incomplete node; reset when all are complete
  std::mutex mutex_;
  std::vector<std::pair<std::int64_t, replica::Replicated>> done_;  // steps that look() reports
};

// Returns the peer checkpoints of a writing rank; null if it does not write or the recipe has none.
// Reports how much of a node's memory they take; throws core::OutOfMemoryError if that exceeds the
// limit.
std::unique_ptr<NodeCopies> make_node_copies(Run& run, Reporter& reporter,
                                             const core::WorkerEnv& env, bool all_write);

}  // namespace scaletrain::train
