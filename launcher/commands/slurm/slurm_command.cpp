#include <fmt/format.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "launcher/commands/commands.h"
#include "launcher/commands/run_status.h"
#include "launcher/commands/slurm/job_record.h"
#include "launcher/commands/slurm/submission.h"
#include "launcher/commands/slurm/tool.h"
#include "launcher/jobs/checks/run_folder.h"
#include "lib/core/descriptor.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/printable.h"
#include "lib/core/process/programs.h"
#include "lib/core/text/shell_word.h"
#include "lib/observe/progress_text.h"

namespace scaletrain::launcher {
namespace {

Captured run_shown(std::vector<std::string> words,
                   std::vector<std::pair<int, int>> descriptors = {}) {
  Captured end = run_tool(std::move(words), std::move(descriptors));
  std::fputs(end.error.c_str(), stderr);
  return end;
}

[[noreturn]] void refuse_end(const char* program, const Captured& end) {
  throw core::UsageError(program, end.trouble(), "its message is above");
}

void print_script(const Submission& submission) {
  std::fputs(submission.script.c_str(), stdout);
  std::string words;
  for (const std::string& word : submission.arguments) words += " " + core::shell_word(word);
  core::log("submit the script with these words: sbatch SCRIPT{}", words);
}

// Jobs get this process's environment; there they must find this very scaletrain.
void put_own_folder_first_on_path() {
  const char* const path = std::getenv("PATH");
  const std::string longer =
      core::own_folder().string() + (path != nullptr ? fmt::format(":{}", path) : "");
  setenv("PATH", longer.c_str(), 1);
}

// A second job would take the run's record from the first, which could not be found again.
void refuse_second_job(const std::filesystem::path& run) {
  const std::string state = state_in_slurm(run);
  if (state.empty()) return;
  throw core::UsageError(
      run.string(), fmt::format("job {} of this run is {}", read_job_record(run).job, state),
      "wait for it, or end it first: scaletrain slurm cancel " + core::shell_word(run.string()));
}

void submit(const Submission& submission) {
  for (const std::filesystem::path& run : submission.runs) refuse_second_job(run);
  put_own_folder_first_on_path();
  const core::Descriptor script = core::make_memory_file("job.sh", submission.script);
  std::vector<std::string> words{"sbatch", "--parsable", core::path_of(script.get())};
  words.insert(words.end(), submission.arguments.begin(), submission.arguments.end());
  const Captured end = run_shown(std::move(words), {{script.get(), script.get()}});
  if (!end.ok()) refuse_end("sbatch", end);
  const std::string job = end.output.substr(0, end.output.find_first_of(";\n"));  // JOB[;CLUSTER]
  for (std::size_t i = 0; i < submission.runs.size(); ++i) {
    JobRecord record{.job = job, .log = {}};
    if (!submission.tasks.empty()) record.job += fmt::format("_{}", submission.tasks[i]);
    record.log = log_path(submission.output_pattern, record.job, submission.job_name);
    write_job_record(submission.runs[i], record);
  }
  fmt::print("{}\n", core::printable(job));
  core::log("submitted job {}; scaletrain slurm status {}", job, submission.runs.front().string());
}

// Columns of the run in the job list; "-" for a job that has not begun.
struct RunColumns {
  std::string step = "-", loss = "-", left = "-";
};

RunColumns columns_of(const std::filesystem::path& run) {
  RunColumns columns;
  try {
    const nlohmann::ordered_json status = run_status(run);
    if (status["step"].is_number()) {
      columns.step = status["step"].dump();
      if (status["total_steps"].is_number()) columns.step += "/" + status["total_steps"].dump();
    }
    if (status["loss"].is_number()) {
      columns.loss = fmt::format("{:.4f}", status["loss"].get<double>());
    }
    if (status["left_s"].is_number()) {
      columns.left = observe::format_duration(status["left_s"].get<double>());
    }
  } catch (const core::Error&) {  // there is no run yet: the job waits
  }
  return columns;
}

// Adds the run's columns to the lines of squeue, the first of which has the column names.
std::string with_run(const std::string& squeue, const RunColumns& run) {
  std::vector<std::string> lines;
  std::size_t width = 0;
  std::istringstream stream(squeue);
  for (std::string line; std::getline(stream, line);) {
    line.erase(line.find_last_not_of(' ') + 1);
    width = std::max(width, line.size());
    lines.push_back(std::move(line));
  }
  std::string text;
  RunColumns columns{.step = "STEP", .loss = "LOSS", .left = "LEFT"};
  for (const std::string& line : lines) {
    text += fmt::format("{:<{}}  {:<16}{:<10}{}\n", line, width, columns.step, columns.loss,
                        columns.left);
    columns = run;
  }
  return text;
}

void show_job(const std::filesystem::path& run) {
  const JobRecord record = read_job_record(run);
  const Captured end = run_shown({"squeue", "--states=all", "--jobs=" + record.job,
                                  "--Format=JobArrayID:16,State:14,TimeUsed:14,TimeLimit:14,"
                                  "RestartCnt:15,NumNodes:7,ReasonList:40"});
  if (end.ok() && std::count(end.output.begin(), end.output.end(), '\n') > 1) {
    fmt::print("{}", core::printable_lines(with_run(end.output, columns_of(run))));
  } else {
    fmt::print("job {} is not in Slurm's queue\n", core::printable(record.job));
  }
  const std::optional<std::string> finished = finished_run(run);
  if (finished) fmt::print("the run is finished: {}\n", core::printable(*finished));
}

void cancel_job(const std::filesystem::path& run) {
  const JobRecord record = read_job_record(run);
  if (state_in_slurm(run).empty()) {
    core::log("job {} has ended already: nothing is cancelled", record.job);
    return;
  }
  const Captured end = run_shown({"scancel", record.job});
  if (!end.ok()) refuse_end("scancel", end);
  core::log("job {} is cancelled", record.job);
}

void show_log(const std::filesystem::path& run, int lines, bool follow) {
  const JobRecord record = read_job_record(run);
  if (!std::filesystem::exists(record.log)) {
    throw core::UsageError(record.log, "does not exist", "the job may not have started yet");
  }
  const std::string count = fmt::format("--lines={}", lines);
  execlp("tail", "tail", count.c_str(), follow ? "--follow=name" : "--quiet", "--",
         record.log.c_str(), nullptr);
  throw core::UsageError("tail", core::errno_text(errno), "read the file: " + record.log);
}

struct LogFlags {
  std::string run{};
  int lines = 100;
  bool follow = false;
};

void add_run_commands(CLI::App& slurm, int& exit_status) {
  const auto flags = std::make_shared<LogFlags>();
  const auto add = [&](const char* name, const char* help, const auto& action) {
    CLI::App* const command = slurm.add_subcommand(name, help);
    command->add_option("RUN", flags->run, "Run folder.")->required()->type_name("RUN");
    command->callback([flags, &exit_status, action] {
      action(*flags);
      exit_status = 0;
    });
    return command;
  };
  add("status", "show the state of a run's Slurm job",
      [](const LogFlags& given) { show_job(given.run); });
  add("cancel", "save and end the run's job", [](const LogFlags& given) { cancel_job(given.run); });
  CLI::App* const logs = add("logs", "show the end of the job's output", [](const LogFlags& given) {
    show_log(given.run, given.lines, given.follow);
  });
  logs->add_option("--lines", flags->lines, "Number of lines from the end.")
      ->check(CLI::Range(0, 1'000'000'000));
  logs->add_flag("--follow", flags->follow, "Follow the log as it grows.");
}

}  // namespace

void add_slurm_command(CLI::App& app, int& exit_status) {
  const auto options = std::make_shared<SlurmOptions>();
  const auto prints = std::make_shared<bool>(false), submits = std::make_shared<bool>(false);
  CLI::App* const slurm = app.add_subcommand(
      "slurm", "Write or submit a batch script for a recipe, or look after its job");
  slurm->require_subcommand(0, 1);
  declare_slurm(*slurm, *options);
  CLI::Option* const print =
      slurm->add_flag("--print", *prints, "Print the script. This is the default.");
  slurm->add_flag("--submit", *submits, "Submit the script with sbatch.")->excludes(print);
  add_run_commands(*slurm, exit_status);
  slurm->callback([slurm, options, prints, submits, &exit_status] {
    if (!slurm->get_subcommands().empty()) return;
    if (options->launch.path.empty()) {
      throw core::UsageError("slurm", "no recipe is given", "scaletrain slurm RECIPE --submit");
    }
    const Submission submission = prepare_submission(*options);
    if (*submits) {
      submit(submission);
    } else {
      print_script(submission);
    }
    exit_status = 0;
  });
}

}  // namespace scaletrain::launcher
