#include "launcher/jobs/newest_checkpoint.h"

#include <fmt/format.h>

#include <string>

#include "launcher/jobs/checks/mirror_copies.h"
#include "launcher/jobs/checks/run_folder.h"
#include "launcher/jobs/checks/start_check.h"
#include "launcher/jobs/node_memory.h"
#include "lib/core/disk/disk.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/text/url.h"
#include "lib/format/checkpoint/checkpoint_folder.h"
#include "lib/format/checkpoint/checkpoint_folder_remove.h"

namespace scaletrain::launcher {
namespace {

namespace fs = std::filesystem;

// Seconds, for a remote place that may have a newer one.
constexpr double kPatienceForNewer = 15;

struct Own {
  std::optional<fs::path> checkpoint;
  std::int64_t step = -1;
  std::optional<core::CheckpointError> damage;  // set if all are damaged
};

Own find_own(const fs::path& output) {
  Own own;
  try {
    own.checkpoint =
        format::find_checkpoint(output, [](const std::string& text) { core::warn("{}", text); });
  } catch (const core::CheckpointError& error) {
    own.damage = error;
  }
  if (own.checkpoint) own.step = format::read_manifest(*own.checkpoint).step;
  return own;
}

std::string why(const Own& own) {
  if (own.checkpoint) return fmt::format("its newest checkpoint is of step {}", own.step);
  return own.damage ? "none of its checkpoints is whole" : "it has no checkpoint";
}

// Removes the recipe of a run that has not begun, so that the next launch is not compared with it.
void forget_recipe(const fs::path& output) {
  if (!holds_run(output)) core::system_disk().remove_all(output / "recipe.json");
}

// nullopt: there is no newer one.
std::optional<fs::path> fetch_newer(const RunRequest& request, const Own& own) {
  const recipe::Recipe& recipe = request.recipe;
  const auto patience_s = own.checkpoint ? std::optional(kPatienceForNewer) : std::nullopt;
  std::optional<fs::path> copy = fetch_from_mirror(recipe, own.step, patience_s);
  if (!copy) return std::nullopt;
  core::log("{}: {}, so {} was copied from {}", recipe.output, why(own), copy->filename().string(),
            core::shown_path(recipe.checkpoint.mirror));
  try {
    const auto stored = stored_recipe(*copy, recipe.model.catalog);
    if (stored) check_differences(*stored, recipe, request.allow, copy->string());
  } catch (const core::Error&) {
    // Another launch would take it for the run's own.
    format::remove_folder(core::system_disk(), *copy);
    forget_recipe(recipe.output);
    throw;
  }
  return copy;
}

}  // namespace

std::optional<fs::path> newest_checkpoint(const RunRequest& request,
                                          const std::vector<std::string>& replicas,
                                          const NodeMemory* memory) {
  Own own = find_own(request.recipe.output);
  if (auto held = fetch_from_memory(request.recipe, replicas, memory, own.step)) {
    own = {.checkpoint = held, .step = format::read_manifest(*held).step, .damage = {}};
  }
  if (!request.recipe.checkpoint.mirror.empty()) {
    try {
      if (auto newer = fetch_newer(request, own)) return newer;
    } catch (const core::Error& error) {
      if (!own.checkpoint || error.exit_code() != core::ExitCode::kStorage) throw;
      core::warn("{}: {}; the run continues from the newest checkpoint in its own folder",
                 error.place(), error.found());
    }
  }
  if (own.damage) throw core::CheckpointError(*own.damage);
  return own.checkpoint;
}

std::optional<fs::path> checkpoint_to_load(const RunRequest& request, bool is_first_attempt,
                                           const std::vector<std::string>& replicas,
                                           const NodeMemory* memory) {
  if (!is_first_attempt || request.start == RunRequest::Start::kNewest) {
    if (auto newest = newest_checkpoint(request, replicas, memory)) return newest;
    if (request.start != RunRequest::Start::kCheckpoint) return std::nullopt;
  }
  if (!holds_run(request.recipe.output)) refuse_copies_of_another(request.recipe);
  if (request.start == RunRequest::Start::kFresh) return std::nullopt;
  return named_checkpoint(request.checkpoint);
}

void refuse_copies_of_another(const recipe::Recipe& recipe) {
  const std::string& mirror = recipe.checkpoint.mirror;
  if (mirror.empty() || steps_in_mirror(recipe).empty()) return;
  forget_recipe(recipe.output);
  throw core::UsageError(core::shown_path(mirror), "holds checkpoints of an earlier run",
                         "continue it with --resume auto, or give this run another place: --set "
                         "checkpoint.mirror=PLACE");
}

}  // namespace scaletrain::launcher
