// The commands of `scaletrain`, each added to its command line by the file that is named beside it.
//
// A callback runs inside app.parse(): it prints to standard output and sets `exit_status`, which is
// 0 before, or throws core::Error for the caller of parse() to print.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): the name is CLI11's
class App;
}

namespace scaletrain::launcher {

// `launch` and `resume` (launch_command.cpp). `program` is what cut_program found on the command
// line, set before app.parse().
void add_launch_commands(CLI::App& app, const std::optional<std::vector<std::string>>& program,
                         int& exit_status);
// `demo [--minutes N] [--output FOLDER]` (start/demo_command.cpp): draws its own data and trains on
// it through a launch.
void add_demo_command(CLI::App& app, int& exit_status);
// `lr-find RECIPE` (lr_find/): learning rate range test with its curve and a suggestion.
void add_lr_find_command(CLI::App& app, int& exit_status);
// `explain launch ...` (explain/): every value that a launch would use and where it came from. It
// starts nothing, and throws what a launch would refuse. The result is its `launch`, which knows
// the flags for cut_program. `words` are what a person typed, less the program, and `program` what
// cut_program found, both set before app.parse().
CLI::App* add_explain_command(CLI::App& app, const std::vector<std::string>& words,
                              const std::optional<std::vector<std::string>>& program,
                              int& exit_status);
// `recipe check|show|schema|reference` (recipe_command.cpp): what a recipe says. `recipe new` is
// added by start/recipe_new.h.
void add_recipe_commands(CLI::App& app, int& exit_status);
// `checkpoint inspect|verify PATH [--json]` (checkpoint_command.cpp): what a checkpoint holds, and
// whether it is whole; 65 where it is not. `diff A B` and `average A B... -o OUT`
// (checkpoint_diff.cpp, checkpoint_average.cpp): of any weights that can be read. `export` and
// `import` (checkpoint_export.cpp, checkpoint_import.cpp): for other libraries, and from them.
// `words` are what a person typed, less the program; they live as long as `app`.
void add_checkpoint_commands(CLI::App& app, const std::vector<std::string>& words,
                             int& exit_status);
// `status RUN [--watch] [--json]` (status_command.cpp): how a run is.
void add_status_command(CLI::App& app, int& exit_status);
// `report RUN...`, `compare RUN...`, `runs [FOLDER]` and `models` (runs/): pages and tables of
// runs, and a registry of models.
void add_report_command(CLI::App& app, int& exit_status);
void add_compare_command(CLI::App& app, int& exit_status);
void add_runs_command(CLI::App& app, int& exit_status);
void add_models_commands(CLI::App& app, int& exit_status);
// `watch RUN [--once] [--width N]` (watch/): the curves of a run in the terminal while it trains.
void add_watch_command(CLI::App& app, int& exit_status);
// `generate CHECKPOINT --prompt TEXT` (generate_command.cpp), `eval CHECKPOINT` and `predict
// CHECKPOINT IMAGE...` (eval_command.cpp): the worker with the same `words`, what a person typed
// from the command's name on, which live as long as `app`; or several workers.
void add_generate_command(CLI::App& app, const std::vector<std::string>& words, int& exit_status);
void add_eval_command(CLI::App& app, const std::vector<std::string>& words, int& exit_status);
void add_predict_command(CLI::App& app, const std::vector<std::string>& words, int& exit_status);
// `bench memory|speed RECIPE` (bench/): what a recipe costs, as it is and with the techniques that
// make it cheaper.
void add_bench_command(CLI::App& app, int& exit_status);
// `plan RECIPE` and `plan scores` (plan/): memory, time and cost of a recipe before it runs.
void add_plan_command(CLI::App& app, int& exit_status);
// `doctor` (doctor/): what of this machine would end a run tonight; 1 where a check failed.
void add_doctor_command(CLI::App& app, int& exit_status);
// `queue` and `sweep` (queue/): several runs on this machine's devices.
void add_queue_commands(CLI::App& app, int& exit_status);
// `slurm` (slurm/): a batch script for a recipe, and the job that came of it: status, cancel, logs.
void add_slurm_command(CLI::App& app, int& exit_status);
// `worker RECIPE` (slurm/worker_command.cpp), under srun: one task of Slurm's is one rank.
void add_worker_command(CLI::App& app, int& exit_status);
// `k8s RECIPE` (kubernetes/): the objects for kubectl that run a recipe.
void add_k8s_command(CLI::App& app, int& exit_status);
// `completion`, `man` and `help --markdown` (shell/): made from the command table of `app` as it is
// when they run, and from that of `scaletrain data`.
void add_shell_commands(CLI::App& app, int& exit_status);
// Sets the headings and examples of all commands (command_texts.cpp). Call after all are added.
void set_launcher_texts(CLI::App& app);

}  // namespace scaletrain::launcher
