#include "launcher/jobs/checks/resume_checks.h"

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "launcher/jobs/checks/run_folder.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/format/checkpoint/checkpoint_folder.h"
#include "lib/format/checkpoint/train_state_check.h"
#include "lib/recipe/load.h"

namespace scaletrain::launcher {

namespace fs = std::filesystem;

void refuse_past_end(const fs::path& checkpoint, const recipe::Recipe& recipe) {
  try {
    format::check_not_past_end(format::read_state(checkpoint),
                               nlohmann::json::parse(recipe::to_json(recipe)), checkpoint.string());
  } catch (const core::CheckpointError& error) {
    throw core::UsageError(error.place(), error.found(),
                           "set steps or epochs of the recipe to this length or more");
  }
}

void refuse_untrained(const fs::path& checkpoint) {
  if (format::read_state(checkpoint).global_batch > 0) return;
  throw core::UsageError(checkpoint.string(),
                         "has imported weights and no training state to resume",
                         R"(start a run from them: "weights" in /model of its recipe)");
}

void note_replaced_recipe(const fs::path& output, const recipe::Recipe& recipe) {
  std::ifstream file(output / "recipe.json");
  const std::string stored{std::istreambuf_iterator<char>(file), {}};
  if (stored.empty() || stored == recipe::to_json(recipe) || is_running(output)) return;
  core::log("{}: an earlier start left no checkpoint: the recipe given now replaces its recipe",
            output.string());
}

}  // namespace scaletrain::launcher
