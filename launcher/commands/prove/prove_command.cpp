// `prove`: short runs on this machine that show which changes do not affect a recipe's digest and
// losses.
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "launcher/commands/commands.h"
#include "launcher/commands/explain/layout_rows.h"
#include "launcher/commands/prove/proof_text.h"
#include "launcher/commands/prove/proofs.h"
#include "launcher/commands/prove/short_recipe.h"
#include "launcher/commands/prove/trial_runner.h"
#include "launcher/flags/launch_options.h"
#include "launcher/jobs/checks/run_request.h"
#include "launcher/platform/gpus.h"
#include "launcher/platform/scratch_folder.h"
#include "lib/core/disk/disk.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/printable.h"
#include "lib/core/text/json_text.h"
#include "lib/format/weights/weight_diff.h"

namespace scaletrain::launcher {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct ProveArguments {
  LaunchOptions recipe;  // path, --set, --worker
  std::int64_t steps = 8;
  int nproc = 0;  // 0: not given
  std::vector<std::string> only;
  std::optional<std::uint64_t> seed;  // seed of the kills
  std::string folder;
  bool json = false;
};

int most_ranks_of(const ProveArguments& arguments, const recipe::Recipe& recipe) {
  constexpr int kMost = 4;
  if (arguments.nproc > 0) return arguments.nproc;
  const int gpus = recipe.device == "cpu" ? 0 : count_gpus();
  return gpus == 0 ? kMost : std::min(gpus, kMost);
}

int power_of_two_below(int ranks) {
  int result = 1;
  while (2 * result <= ranks) result *= 2;
  return result;
}

// Returns the bytes of a checkpoint; nullopt if the worker cannot predict them.
std::optional<std::int64_t> checkpoint_bytes(const recipe::Recipe& recipe) {
  recipe::Recipe alone = recipe;
  alone.parallel = {};
  try {
    const Json layout = ask_layout(alone, 1, 1);
    const Json& bytes = layout.at("ranks").at(0).at("bytes");
    std::int64_t sum = 0;
    for (const char* const kind : {"parameters", "optimizer", "averages"}) {
      sum += bytes.value(kind, std::int64_t{0});
    }
    return sum;
  } catch (const core::UsageError&) {
    return std::nullopt;
  }
}

// Throws core::StorageError if the folder has no room for the runs that exist at one time: the
// references, and two checkpoints of the run that is compared with them, in fp64 at most.
void check_space(const fs::path& folder, const recipe::Recipe& recipe) {
  constexpr std::int64_t kCheckpoints = 10;
  const std::optional<std::int64_t> bytes = checkpoint_bytes(recipe);
  if (!bytes) {
    core::warn("the size of a checkpoint is not known: free space is not checked");
    return;
  }
  const std::int64_t needed = kCheckpoints * *bytes;
  const std::int64_t room = core::system_disk().free_bytes(folder);
  if (room >= needed) return;
  throw core::StorageError(
      core::printable(folder.string()),
      fmt::format("has {} MB free, and the runs need {} MB", room / 1'000'000, needed / 1'000'000),
      "use a folder with more room: --folder FOLDER");
}

// Returns the name of the tensor that differs most, relative to its norm; "" if none does.
std::string most_different_tensor(const fs::path& first, const fs::path& second) {
  const auto ignore = [](const std::string& damage) { core::warn("{}", damage); };
  const format::WeightSet a(first, "", ignore), b(second, "", ignore);
  std::string name;
  double largest = -1;
  for (const format::TensorDiff& diff : format::diff_weights(a, b)) {
    if (diff.difference == format::WeightDifference::kNone || diff.relative <= largest) continue;
    largest = diff.relative;
    name = diff.name;
  }
  return name;
}

ProofResult prove(const Proof& proof, TrialRunner& runner) {
  ProofResult result;
  if (!proof.not_applicable.empty()) return result;
  const TrialResult& first = runner.reference(proof.first);
  result.first_digest = first.run.model_digest;
  result.failure = first.failure;
  if (!result.failure.empty()) return result;
  const TrialResult second = runner.run(proof.second);
  result.second_digest = second.run.model_digest;
  result.failure = second.failure;
  if (result.failure.empty()) {
    result.verdict = compare_runs(first.run, second.run, proof.tolerance);
    if (result.verdict.equality == RunEquality::kDifferent) {
      result.tensor = most_different_tensor(first.folder, second.folder);
    }
  }
  core::system_disk().remove_all(second.folder);
  return result;
}

int run_prove(const ProveArguments& arguments) {
  const recipe::Recipe recipe = run_to_launch(arguments.recipe).recipe;
  const int most_ranks = most_ranks_of(arguments, recipe);
  const ShortRecipe shortened = shorten(recipe, arguments.steps, power_of_two_below(most_ranks));
  const std::vector<Proof> chosen = select_proofs(
      proofs(shortened, arguments.steps, most_ranks, arguments.seed.value_or(recipe.seed)),
      arguments.only);
  ScratchFolder scratch("scaletrain-prove-", arguments.folder);
  check_space(scratch.file(""), shortened.recipe);
  TrialRunner runner(scratch);
  std::size_t width = 0;
  for (const Proof& proof : chosen) width = std::max(width, proof.name.size());
  Json rows = Json::array();
  bool is_proven = true;
  for (const Proof& proof : chosen) {
    const ProofResult result = prove(proof, runner);
    is_proven = is_proven && result.is_proven();
    rows.push_back(proof_json(proof, result));
    if (arguments.json) continue;
    std::fputs(proof_row(proof, result, width).c_str(), stdout);
    std::fflush(stdout);
  }
  if (arguments.json) {
    const Json json{{"recipe", arguments.recipe.path},
                    {"steps", arguments.steps},
                    {"proven", is_proven},
                    {"proofs", std::move(rows)}};
    std::fputs((core::json_text(json, 2) + "\n").c_str(), stdout);
  }
  return is_proven ? 0 : 1;
}

}  // namespace

void add_prove_command(CLI::App& app, int& exit_status) {
  constexpr std::int64_t kMostSteps = 10000;
  constexpr int kMostRanks = 1024;
  const auto arguments = std::make_shared<ProveArguments>();
  CLI::App* const command = app.add_subcommand(
      "prove",
      "Prove on this machine that a recipe is reproducible, resumable and independent of "
      "the parallel layout");
  command->add_option("RECIPE", arguments->recipe.path, "Recipe to prove.")->required();
  command->add_option("--steps", arguments->steps, "Number of steps of each run.")
      ->check(CLI::Range(kFewestProofSteps, kMostSteps))
      ->capture_default_str();
  command
      ->add_option("--nproc", arguments->nproc,
                   "Largest number of ranks. Default: 4, or the number of GPUs if it is smaller.")
      ->check(CLI::Range(1, kMostRanks));
  command
      ->add_option("--only", arguments->only,
                   "Proofs or groups of proofs, for example same,killed,tensor-2. Groups: same, "
                   "killed, ranks, accumulation, layouts, techniques, loader. Default: all.")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--seed", arguments->seed,
                      "Seed of the steps and ranks at which a run is killed. Default: the recipe's "
                      "seed.");
  command->add_option("--folder", arguments->folder,
                      "Folder for the temporary runs, which are removed at the end. Default: "
                      "TMPDIR.");
  command
      ->add_option("--set", arguments->recipe.set,
                   "Overrides a key, for example deterministic=true. Repeatable.")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command->add_option("--worker", arguments->recipe.worker,
                      "Path of a worker program of your own, with its models.");
  command->add_flag("--json", arguments->json, "Print one JSON object instead of text.");
  command->callback([arguments, &exit_status] { exit_status = run_prove(*arguments); });
}

}  // namespace scaletrain::launcher
