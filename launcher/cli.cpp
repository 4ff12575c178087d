#include "launcher/cli.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "launcher/commands/commands.h"
#include "launcher/commands/dry_run/dry_run.h"
#include "launcher/commands/lint/lint_command.h"
#include "launcher/commands/program_line.h"
#include "launcher/commands/start/recipe_new.h"
#include "launcher/place/pod.h"
#include "launcher/platform/become.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/process/programs.h"
#include "lib/core/process/subprocess.h"
#include "lib/core/text/command_line.h"
#include "lib/core/text/help_text.h"
#include "lib/recipe/load.h"
#include "lib/recipe/schema/foreign_names.h"

namespace scaletrain::launcher {
namespace {

constexpr int kUsageStatus = static_cast<int>(core::ExitCode::kUsage);

// Resets process state that a parent may have left and that the code below does not expect.
void tidy_up_process() {
  std::signal(SIGCHLD, SIG_DFL);  // ignored, it would make exit statuses disappear
  std::signal(SIGPIPE, SIG_IGN);  // the workers must continue if the console is closed
  std::signal(SIGXFSZ, SIG_IGN);  // a write beyond `ulimit -f` fails with EFBIG and is reported
  // The number of a closed standard stream would be reused by the next opened file.
  while (true) {
    const int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (fd > STDERR_FILENO) {
      close(fd);
      return;
    }
    if (fd < 0) return;
    fcntl(fd, F_SETFD, 0);
  }
}

// Executes `scaletrain-NAME`, beside this program or on PATH; returns if there is none.
void become_external(const std::string& name, const std::vector<std::string>& arguments) {
  std::optional<std::string> path =
      core::find_program(core::program_beside_us(fmt::format("scaletrain-{}", name)));
  if (!path) path = core::find_program(fmt::format("scaletrain-{}", name));
  if (!path) return;
  become(*path, {arguments.begin() + 1, arguments.end()});
}

// "help launch" as "launch --help".
std::vector<std::string> words_for_help(std::vector<std::string> words) {
  if (words.back() == "--help" || words.back() == "-h") return words;
  if (words.back() == "--markdown") return words;  // the command `help` itself
  words.erase(words.begin());
  words.emplace_back("--help");
  return words;
}

// Returns a hint if a recipe key was written like a flag or argument: "--lr 0.1",
// "optimizer.lr=0.1".
std::string key_hint(const std::string& command, const std::string& word) {
  const std::vector<std::string> takers{"scaletrain launch",       "scaletrain resume",
                                        "scaletrain recipe check", "scaletrain recipe lint",
                                        "scaletrain recipe show",  "scaletrain explain launch"};
  if (std::find(takers.begin(), takers.end(), command) == takers.end()) return "";
  std::string name = word.substr(0, word.find('='));
  name.erase(0, name.find_first_not_of('-') == std::string::npos ? 0 : name.find_first_not_of('-'));
  std::replace(name.begin(), name.end(), '-', '_');
  std::vector<std::string> found;
  for (const auto& [key, help] : recipe::settable_keys()) {
    if (key == name || key.ends_with("." + name)) found.push_back(key);
    if (key == name) {
      found = {key};
      break;
    }
  }
  const std::string ours = recipe::our_key(name);
  if (found.empty() && !ours.empty()) {
    const std::size_t both = ours.find(" and ");
    found = {ours.substr(0, both)};
    if (both != std::string::npos) found.push_back(ours.substr(both + 5));
  }
  const std::string reason = recipe::why_no_key(name);
  if (found.empty() && !reason.empty()) return "leave it out: " + reason;
  if (found.empty() || found.size() > 3) return "";
  return fmt::format("a key of the recipe is set by --set {}=VALUE",
                     fmt::join(found, "=VALUE or "));
}

// Makes "explain runs/a" of "explain run runs/a": a path is no command below `explain`.
void complete_explain(std::vector<std::string>& words, const CLI::App& explain) {
  if (words.size() < 2 || words[0] != "explain" || words[1].starts_with("-")) return;
  const std::string& word = words[1];
  std::error_code unknown;
  const std::vector<std::string> known = core::command_names(explain);
  const bool is_command = std::find(known.begin(), known.end(), word) != known.end();
  const bool is_path =
      word.find('/') != std::string::npos || std::filesystem::is_directory(word, unknown);
  if (!is_command && is_path) words.insert(words.begin() + 1, "run");
}

int parse_and_run(const std::vector<std::string>& arguments, const std::string& version) {
  std::vector<std::string> ours(arguments.begin() + 1, arguments.end());
  std::optional<std::vector<std::string>> program;
  int exit_status = 0;
  CLI::App app("Train models on one or many devices.", "scaletrain");
  core::use_help_text(app);
  app.set_version_flag("--version", version,
                       "print the version, the commit and the versions of the libraries");
  app.require_subcommand(0, 1);
  add_launch_commands(app, program, dry_run, exit_status);
  add_demo_command(app, exit_status);
  add_lr_find_command(app, exit_status);
  add_prove_command(app, exit_status);
  add_slurm_command(app, exit_status);
  add_k8s_command(app, exit_status);
  add_worker_command(app, exit_status);
  add_recipe_commands(app, exit_status);
  add_recipe_new(*app.get_subcommand("recipe"), exit_status);
  add_recipe_lint(*app.get_subcommand("recipe"), exit_status);
  add_checkpoint_commands(app, ours, exit_status);
  add_doctor_command(app, exit_status);
  add_queue_commands(app, exit_status);
  add_shell_commands(app, exit_status);
  CLI::App* const explained = add_explain_command(app, ours, program, exit_status);
  add_generate_command(app, ours, exit_status);
  add_eval_command(app, ours, exit_status);
  add_predict_command(app, ours, exit_status);
  add_bench_command(app, exit_status);
  add_plan_command(app, exit_status);
  add_status_command(app, exit_status);
  add_report_command(app, exit_status);
  add_compare_command(app, exit_status);
  add_runs_command(app, exit_status);
  add_reproduce_command(app, exit_status);
  add_models_commands(app, exit_status);
  add_watch_command(app, exit_status);
  add_profile_command(app, exit_status);
  add_trace_commands(app, exit_status);
  set_launcher_texts(app);

  if (ours.empty()) {
    std::cerr << app.help();
    return kUsageStatus;
  }
  if (ours[0] == "help") ours = words_for_help(std::move(ours));
  if (ours[0] == "launch") program = cut_program(ours, *app.get_subcommand("launch"));
  complete_explain(ours, *explained->get_parent());
  if (ours.size() > 1 && ours[0] == "explain" && ours[1] == "launch") {
    std::vector<std::string> launch(ours.begin() + 1, ours.end());
    program = cut_program(launch, *explained);
    ours.resize(launch.size() + 1);
  }
  if (!ours[0].starts_with("-")) {
    const std::vector<std::string> known = core::command_names(app);
    if (std::find(known.begin(), known.end(), ours[0]) == known.end()) {
      become_external(ours[0], ours);
      core::refuse_command(app, ours[0], {"data"});
    }
  }
  return core::parse_command_line(app, ours, key_hint) ? exit_status : 0;
}

}  // namespace

int run(int argc, char** argv, const std::string& version) {
  try {
    tidy_up_process();
    const int status = parse_and_run({argv, argv + argc}, version);
    core::flush_output();
    return status_for_operator(status);
  } catch (const std::exception& error) {
    core::log_line(core::describe(error));
    return status_for_operator(static_cast<int>(core::exit_code_of(error)));
  }
}

}  // namespace scaletrain::launcher
