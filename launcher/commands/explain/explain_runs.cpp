#include "launcher/commands/explain/explain_runs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "launcher/commands/explain/explanation.h"
#include "launcher/commands/explain/flag_rows.h"
#include "launcher/commands/explain/recipe_rows.h"
#include "launcher/commands/queue/queue_options.h"
#include "launcher/commands/slurm/submission.h"
#include "launcher/jobs/checks/load_recipe_of_run.h"
#include "launcher/jobs/checks/worker_program.h"
#include "launcher/platform/numa.h"
#include "lib/core/error.h"
#include "lib/recipe/load.h"

namespace scaletrain::launcher {
namespace {

std::vector<Explained> rows_of_recipe(const std::string& path, const Words& overrides) {
  return recipe_rows(recipe::to_json(load_recipe_of_run(path, overrides)),
                     recipe::key_origins(path, overrides));
}

// A job's own overrides, less those that name it and its folder, which have rows of their own.
std::string recipe_with_values(const QueuedJob& job) {
  std::string text = job.recipe;
  for (const auto& [key, value] : job.values) text += fmt::format(" {}={}", key, value);
  return text;
}

Explanation explain_queue(const CLI::App& command, const Words& words,
                          const QueueOptions& options) {
  Explanation result{.title = command.get_name(), .launch = flag_rows(command, words)};
  for (Explained& row : result.launch) {
    if (row.name == "folder" && row.from == "default") row.value = folder_of(options);
  }
  for (const QueuedJob& job : jobs_of(options)) {
    result.runs.push_back({.name = job.name, .value = job.output, .from = recipe_with_values(job)});
  }
  if (options.slurm) return result;
  const std::vector<RunPlace> places = places_of(options);
  for (std::size_t i = 0; i < places.size(); ++i) {
    const RunPlace& place = places[i];
    Explained row{.name = fmt::format("place {}", i + 1), .value = {}, .from = {}};
    row.value = !place.devices.empty() ? place.devices
                : place.cpus.empty()   ? "all CPUs"
                                       : fmt::format("CPUs {}", cpu_list(place.cpus));
    row.from = place.devices.empty() ? "CPUs over --jobs" : "devices over --nproc";
    result.launch.push_back(std::move(row));
  }
  return result;
}

Explanation explain_slurm(const CLI::App& command, const Words& words,
                          const SlurmOptions& options) {
  if (options.launch.path.empty()) {
    throw core::UsageError("explain slurm", "no recipe is given",
                           "scaletrain explain slurm [flags] RECIPE");
  }
  const Submission submission = prepare_submission(options);
  Explanation result{.title = "slurm", .launch = flag_rows(command, words)};
  for (Explained& row : result.launch) {
    if (row.name == "job-name") row.value = submission.job_name;
    if (row.name == "output") row.value = submission.output_pattern;
  }
  for (std::size_t i = 0; i < submission.runs.size(); ++i) {
    const bool is_array = !submission.tasks.empty();
    result.runs.push_back(
        {.name = is_array ? fmt::format("task {}", submission.tasks[i]) : submission.job_name,
         .value = submission.runs[i].string(),
         .from = options.launch.path});
  }
  if (submission.tasks.empty()) {
    result.recipe = rows_of_recipe(options.launch.path, overrides_of(options.launch));
  }
  result.notes.push_back(fmt::format("arguments of scaletrain launch in the script: {}",
                                     fmt::join(submission.arguments, " ")));
  return result;
}

// `Options` live as long as the app.
template <class Options>
void add_explained(CLI::App& explain, const char* name, const char* help, const Words& words,
                   int& exit_status, void (*declare)(CLI::App&, Options&),
                   Explanation (*make)(const CLI::App&, const Words&, const Options&)) {
  CLI::App* const command = explain.add_subcommand(name, help);
  command->option_defaults()->always_capture_default();
  const auto options = std::make_shared<Options>();
  const auto as_json = std::make_shared<bool>(false);
  declare(*command, *options);
  command->add_flag("--json", *as_json, "Print JSON instead of text.");
  command->callback([command, &words, options, as_json, make, &exit_status] {
    const Explanation explanation = make(*command, words, *options);
    std::fputs((*as_json ? to_json(explanation) : to_text(explanation)).c_str(), stdout);
    exit_status = 0;
  });
}

}  // namespace

void add_explained_runs(CLI::App& explain, const std::vector<std::string>& words,
                        int& exit_status) {
  add_explained(explain, "slurm",
                "explain a Slurm job: all flags, its runs and the arguments in its script", words,
                exit_status, declare_slurm, explain_slurm);
  add_explained(explain, "queue", "explain a queue: all flags, and its runs", words, exit_status,
                declare_queue, explain_queue);
  add_explained(explain, "sweep", "explain a sweep: all flags, and its runs", words, exit_status,
                declare_sweep, explain_queue);
}

}  // namespace scaletrain::launcher
