#include "launcher/jobs/checks/model_check.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "launcher/jobs/checks/worker_program.h"
#include "launcher/platform/captured.h"
#include "lib/core/error.h"
#include "lib/recipe/load.h"
#include "lib/recipe/recipe.h"

namespace scaletrain::launcher {

int check_in_worker(const recipe::Recipe& recipe, const std::string& path,
                    std::vector<std::string> overrides, int ranks) {
  constexpr std::chrono::minutes kLongest{10};
  // Its data and weights may have provided keys (launcher/jobs/checks/load_recipe_of_run.h).
  overrides.push_back("model=" + nlohmann::json::parse(recipe::to_json(recipe)).at("model").dump());
  std::vector<std::string> words{worker_of(recipe),    "model", "--recipe", path, "--ranks",
                                 std::to_string(ranks)};
  for (const std::string& one : overrides) words.insert(words.end(), {"--set", one});
  const Captured done = run_captured({.arguments = words, .variables = {}}, kLongest);
  std::fputs(done.error.c_str(), stderr);
  if (done.timed_out) {
    throw core::UsageError("--worker", "the worker has not built the model after 10 minutes",
                           "check the recipe on a machine with more memory");
  }
  return done.status.shell_code();
}

}  // namespace scaletrain::launcher
