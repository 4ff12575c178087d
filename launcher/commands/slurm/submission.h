// `scaletrain slurm RECIPE`: turns flags into the script, its arguments and its runs.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "launcher/flags/launch_options.h"
#include "lib/core/text/cli_app.h"

namespace scaletrain::launcher {

// The flags as given; "": not given.
struct SlurmOptions {
  LaunchOptions launch{};  // path, set, allow, worker, nproc
  std::string nodes = "1";
  std::string gpus_per_node{};
  std::string cpus_per_node{};
  std::string time{};
  std::string mem{};
  std::string partition{};
  std::string account{};
  std::string qos{};
  std::string array{};
  std::string job_name{};
  std::string output{};
  std::string save_before = "2m";
  std::vector<std::string> sbatch{};  // OPTION or OPTION=VALUE
};

// Declares RECIPE and the flags.
void declare_slurm(CLI::App& command, SlurmOptions& options);

struct Submission {
  std::string script{};
  std::vector<std::string> arguments{};  // for the script: the recipe and flags for launch
  std::string job_name{}, output_pattern{};
  std::vector<int> tasks{};                   // array task numbers; empty: no array
  std::vector<std::filesystem::path> runs{};  // the run's folder, or one for each task
};

// Makes the same checks as `scaletrain launch` on the nodes: every task's recipe, its batch for the
// number of ranks, its data, its run folder. Throws core::UsageError or core::RecipeError.
Submission prepare_submission(const SlurmOptions& options);

}  // namespace scaletrain::launcher
