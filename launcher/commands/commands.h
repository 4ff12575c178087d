// The commands of `scaletrain`; the file that implements each is named beside it.
//
// A callback runs inside app.parse(): it prints to standard output and sets `exit_status`, which is
// 0 before, or throws core::Error for the caller of parse() to print.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/core/text/cli_app.h"

namespace scaletrain::launcher {

struct LaunchOptions;

// Runs `launch --dry-run` and returns the exit status (dry_run/dry_run.h).
using DryRun = int(const LaunchOptions& options, bool as_json);

// `launch` and `resume` (launch_command.cpp). `program` is what cut_program found on the command
// line, set before app.parse(). `dry_run` is called for --dry-run.
void add_launch_commands(CLI::App& app, const std::optional<std::vector<std::string>>& program,
                         DryRun* dry_run, int& exit_status);
// `demo [--minutes N] [--output FOLDER]` (start/demo_command.cpp): draws its own data and trains on
// it through a launch.
void add_demo_command(CLI::App& app, int& exit_status);
// `lr-find RECIPE` (lr_find/): learning rate range test with its curve and a suggestion.
void add_lr_find_command(CLI::App& app, int& exit_status);
// `prove RECIPE` (prove/): short runs that must end alike; exit code 1 if some do not.
void add_prove_command(CLI::App& app, int& exit_status);
// `explain launch ...` (explain/): every value that a launch would use and its origin. Starts
// nothing, and throws what a launch would refuse. Returns its `launch` command, which knows the
// flags for cut_program. `words`: the command line without the program; `program`: result of
// cut_program. Both are set before app.parse().
CLI::App* add_explain_command(CLI::App& app, const std::vector<std::string>& words,
                              const std::optional<std::vector<std::string>>& program,
                              int& exit_status);
// `recipe check|show|schema|reference` (recipe_command.cpp). `recipe new` is added by
// start/recipe_new.h, `recipe lint` by lint/lint_command.h.
void add_recipe_commands(CLI::App& app, int& exit_status);
// `checkpoint inspect|verify PATH [--json]` (checkpoint_command.cpp): contents of a checkpoint, and
// its verification (exit code 65 if it is damaged). `diff A B` and `average A B... -o OUT`
// (checkpoint_diff.cpp, checkpoint_average.cpp) work with any readable weights. `export` and
// `import` (checkpoint_export.cpp, checkpoint_import.cpp) exchange weights with other libraries.
// `words`: the command line without the program, alive as long as `app`.
void add_checkpoint_commands(CLI::App& app, const std::vector<std::string>& words,
                             int& exit_status);
// `status RUN [--watch] [--json]` (status_command.cpp): the state of a run.
void add_status_command(CLI::App& app, int& exit_status);
// `report RUN...`, `compare RUN...`, `runs [FOLDER]` and `models` (runs/): pages and tables of
// runs, and a registry of models.
void add_report_command(CLI::App& app, int& exit_status);
void add_compare_command(CLI::App& app, int& exit_status);
void add_runs_command(CLI::App& app, int& exit_status);
void add_models_commands(CLI::App& app, int& exit_status);
// `reproduce RUN [--output FOLDER] [--check] [--json]` (runs/): trains a finished run again and
// compares both; exit code 1 if they differ.
void add_reproduce_command(CLI::App& app, int& exit_status);
// `profile RUN [--steps N] [--wait]`, `trace merge` and `trace top` (trace/): traces of a running
// job, and their analysis.
void add_profile_command(CLI::App& app, int& exit_status);
void add_trace_commands(CLI::App& app, int& exit_status);
// `watch RUN [--once] [--width N]` (watch/): the curves of a run in the terminal while it trains.
void add_watch_command(CLI::App& app, int& exit_status);
// `generate CHECKPOINT --prompt TEXT` (generate_command.cpp), `eval CHECKPOINT` and `predict
// CHECKPOINT IMAGE...` (eval_command.cpp): run one or several workers with the same `words`, the
// command line from the command's name on, alive as long as `app`.
void add_generate_command(CLI::App& app, const std::vector<std::string>& words, int& exit_status);
void add_eval_command(CLI::App& app, const std::vector<std::string>& words, int& exit_status);
void add_predict_command(CLI::App& app, const std::vector<std::string>& words, int& exit_status);
// `bench memory|speed RECIPE` (bench/): memory or speed of a recipe, unchanged and with techniques
// that reduce its cost.
void add_bench_command(CLI::App& app, int& exit_status);
// `plan RECIPE` and `plan scores` (plan/): memory, time and cost of a recipe before it runs.
void add_plan_command(CLI::App& app, int& exit_status);
// `doctor` (doctor/): finds problems of this machine that would end a run; exit code 1 if a check
// failed.
void add_doctor_command(CLI::App& app, int& exit_status);
// `queue` and `sweep` (queue/): several runs on this machine's devices.
void add_queue_commands(CLI::App& app, int& exit_status);
// `slurm` (slurm/): writes a batch script for a recipe and submits it; status, cancel and logs of
// the job.
void add_slurm_command(CLI::App& app, int& exit_status);
// `worker RECIPE` (slurm/worker_command.cpp), under srun: each Slurm task is one rank.
void add_worker_command(CLI::App& app, int& exit_status);
// `k8s RECIPE` (kubernetes/): prints the Kubernetes objects that run a recipe.
void add_k8s_command(CLI::App& app, int& exit_status);
// `completion`, `man` and `help --markdown` (shell/): generated from the command table of `app`
// when they run, and from that of `scaletrain data`.
void add_shell_commands(CLI::App& app, int& exit_status);
// Sets the headings and examples of all commands (command_texts.cpp). Call after all are added.
void set_launcher_texts(CLI::App& app);

}  // namespace scaletrain::launcher
