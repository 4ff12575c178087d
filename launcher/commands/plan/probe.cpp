#include "launcher/commands/plan/probe.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <utility>

#include "launcher/commands/worker_ranks.h"
#include "launcher/jobs/checks/worker_program.h"
#include "launcher/platform/scratch_folder.h"
#include "lib/core/error.h"
#include "lib/recipe/load.h"
#include "lib/recipe/ranks.h"
#include "lib/recipe/recipe.h"

namespace scaletrain::launcher {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// Sets the recipe's batch for the ranks of one node, with the same number of micro-batches as on
// all nodes.
void keep_micro_batches(recipe::Recipe& recipe, const PlanTarget& target) {
  if (target.nodes == 1) return;
  recipe.batch.accumulate = recipe::plan_batch(recipe, target.ranks()).accumulate;
  recipe.batch.global.reset();
}

Json measure(const std::string& what, const recipe::Recipe& recipe, const PlanTarget& target,
             const ScratchFolder& scratch) {
  const fs::path input = scratch.file("recipe.json"), output = scratch.file(what + ".json");
  std::ofstream(input) << recipe::to_json(recipe);
  const RanksEnd end = run_worker_ranks(
      worker_of(recipe), std::to_string(target.nproc),
      {"bench", what, "--recipe", input.string(), "--out", output.string(), "--steps", "10"});
  if (end.stop_signal != 0) throw_stopped("plan --probe", end.stop_signal);
  std::ifstream stream(output);
  Json answer = Json::parse(stream, nullptr, /*allow_exceptions=*/false);
  if (end.status != 0 || !answer.is_object()) {
    throw core::UsageError("--probe",
                           fmt::format("the measurement of {} ended with {}", what, end.status),
                           "the messages above say why; leave out --probe to predict only");
  }
  return answer;
}

}  // namespace

ProbedStep probe_step(recipe::Recipe recipe, const PlanTarget& target) {
  const ScratchFolder scratch("scaletrain-plan-");
  keep_micro_batches(recipe, target);
  recipe.output = scratch.file("run").string();
  ProbedStep probed;
  const Json memory = measure("memory", recipe, target, scratch);
  for (const auto& [kind, bytes] : memory.at("peak_bytes").items()) {
    if (kind != "total") probed.memory.push_back({kind, bytes.get<double>()});
  }
  probed.seconds = measure("speed", recipe, target, scratch).at("step_s").get<double>();
  return probed;
}

}  // namespace scaletrain::launcher
