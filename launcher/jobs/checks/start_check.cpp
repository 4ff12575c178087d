#include "launcher/jobs/checks/start_check.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

#include "launcher/jobs/checks/resume_checks.h"
#include "launcher/jobs/checks/run_folder.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/printable.h"
#include "lib/core/text/url.h"
#include "lib/exchange/known_tokenizer.h"
#include "lib/format/checkpoint/checkpoint_folder.h"

namespace scaletrain::launcher {
namespace {

namespace fs = std::filesystem;

// The training tokens may have been written again since the run began.
void check_tokenizer(const recipe::Recipe& recipe, const fs::path& run) {
  const std::vector<std::string>& tokens = recipe.data.train.tokens;
  if (tokens.empty()) return;
  exchange::check_tokenizer_of_run(tokens.front(), run);
  const auto trained = exchange::tokenizer_of_run(run);
  if (!trained || core::is_url(tokens.front()) || exchange::tokenizer_of_tokens(tokens.front())) {
    return;
  }
  core::warn(
      "/data/train/tokens: {} has no card: that its tokens are those of {}, as {} says, is "
      "not known",
      core::shown_path(tokens.front()), core::printable(trained->name), trained->place);
}

void check_fresh(const fs::path& output) {
  if (!holds_run(output)) return;
  throw core::UsageError(
      output.string(), "holds checkpoints of an earlier run",
      "continue it with --resume auto, or give this run another folder: --set output=FOLDER");
}

// True if the lengths of the runs are equal, so that a finished run needs no further training.
bool check_newest(const RunRequest& request, const fs::path& output) {
  if (!holds_run(output)) {
    note_replaced_recipe(output, request.recipe);
    return false;
  }
  check_tokenizer(request.recipe, output);
  const auto stored = stored_recipe(output, request.recipe.model.catalog);
  if (!stored) return true;
  return !check_differences(*stored, request.recipe, request.allow, output.string());
}

void check_named(const RunRequest& request, const fs::path& output) {
  const fs::path named = named_checkpoint(request.checkpoint);
  refuse_untrained(named);
  check_tokenizer(request.recipe, named.parent_path().parent_path());
  const auto stored = stored_recipe(request.checkpoint, request.recipe.model.catalog);
  if (stored) {
    check_differences(*stored, request.recipe, request.allow, request.checkpoint.string());
  }
  const auto ignore = [](const std::string&) {};
  if (!holds_run(output) || format::find_checkpoint(output, ignore) == named) return;
  throw core::UsageError(
      named.string(),
      fmt::format("is not the newest checkpoint of {}, where the run would continue",
                  output.string()),
      "two histories would be mixed in that folder: use another one: --set "
      "output=FOLDER");
}

}  // namespace

bool check_start(const RunRequest& request) {
  const fs::path output = request.recipe.output;
  switch (request.start) {
    case RunRequest::Start::kFresh:
      check_fresh(output);
      return false;
    case RunRequest::Start::kNewest:
      return check_newest(request, output);
    case RunRequest::Start::kCheckpoint:
      check_named(request, output);
      return false;
  }
  return false;
}

fs::path named_checkpoint(const fs::path& path) {
  const auto warn = [](const std::string& text) { core::warn("{}", text); };
  if (auto named = format::find_checkpoint(path, warn)) return *named;
  throw core::CheckpointError(path.string(), "has no checkpoint",
                              "name a run's folder, one of its checkpoints, or latest");
}

}  // namespace scaletrain::launcher
