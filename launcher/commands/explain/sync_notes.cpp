#include "launcher/commands/explain/sync_notes.h"

#include <fmt/format.h>

namespace scaletrain::launcher {

std::vector<std::string> sync_notes(const recipe::Sync& sync, int replicas) {
  if (!sync.outlives_replicas() || replicas == 1) return {};
  std::vector<std::string> notes;
  if (sync.name == "async") {
    notes.push_back(fmt::format(
        "sync: each of {} replicas exchanges weights after every {} steps of its own, at most {} "
        "times more often than the slowest: neither the bits nor the order of samples are those of "
        "another run",
        replicas, sync.steps, sync.staleness));
  }
  notes.emplace_back(
      "sync: a replica that is lost does not end the job, rank 0's does; the job then exits with "
      "77");
  return notes;
}

}  // namespace scaletrain::launcher
