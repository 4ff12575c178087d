#include "launcher/commands/explain/sync_notes.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/core/text/text.h"
#include "lib/recipe/apart.h"
#include "lib/recipe/recipe.h"

namespace scaletrain::launcher {

std::vector<std::string> sync_notes(const recipe::Recipe& recipe, int replicas) {
  const recipe::Sync& sync = recipe.sync;
  const recipe::Parallel& parallel = recipe.parallel;
  // Ranks of a replica; experts are spread over several copies of all other layers.
  const std::int64_t ranks = std::max(parallel.shard, parallel.expert) * parallel.context *
                             parallel.tensor * parallel.pipeline;
  if (replicas == 1 || !sync.is_rare()) return {};
  const bool is_apart = recipe::replicas_are_apart(recipe);
  std::vector<std::string> notes;
  if (sync.is_async()) {
    notes.push_back(fmt::format(
        "sync: each of {} replicas exchanges weights after every {} of its own, at most {} "
        "more often than the slowest: neither the bits nor the order of samples are those of "
        "another run",
        replicas, core::counted(sync.steps, "step"), core::counted(sync.staleness, "time")));
  } else if (ranks > 1) {
    notes.push_back(fmt::format(
        "sync: each of {} replicas of {} ranks trains alone for {}, then each rank exchanges "
        "weights with those that own the same{}",
        replicas, ranks, core::counted(sync.steps, "step"),
        is_apart ? "" : "; the loss of any rank ends the job"));
  }
  if (sync.overlap > 0) {
    notes.push_back(fmt::format(
        "sync: training goes on for {} while {} is exchanged; validations and saves wait for "
        "its end; the loss of any rank ends the job",
        core::counted(sync.overlap, "step"), sync.fragments > 1 ? "a fragment" : "the model"));
  }
  if (!is_apart) return notes;
  notes.push_back(
      fmt::format("sync: a replica that is lost{} does not end the job, rank 0's does; "
                  "the job then exits with 77",
                  ranks > 1 ? ", as one of its ranks is," : ""));
  return notes;
}

}  // namespace scaletrain::launcher
