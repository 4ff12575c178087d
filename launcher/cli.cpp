#include "launcher/cli.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/checkpoint_command.h"
#include "launcher/launch_command.h"
#include "launcher/program_line.h"
#include "launcher/programs.h"
#include "launcher/recipe_command.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/lookup.h"
#include "lib/core/subprocess.h"
#include "lib/core/version.h"

namespace scaletrain::launcher {
namespace {

constexpr int kUsageStatus = static_cast<int>(core::ExitCode::kUsage);

// What a parent may have left in a state that would surprise the code below.
void tidy_up_process() {
  std::signal(SIGCHLD, SIG_DFL);  // ignored, it would make exit statuses disappear
  std::signal(SIGPIPE, SIG_IGN);  // a closed console is no reason to leave workers alone
  // A closed standard stream would give its number to the next file that is opened.
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

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> result;
  for (const CLI::App* command : app.get_subcommands({})) result.push_back(command->get_name());
  return result;
}

std::string did_you_mean(const std::string& name, const std::vector<std::string>& known) {
  const std::string near = core::nearest(name, known);
  return near.empty() ? "" : fmt::format("; did you mean \"{}\"?", near);
}

// Becomes `scaletrain-NAME`, beside this program or on PATH; comes back where there is none.
void become_external(const std::string& name, const std::vector<std::string>& arguments) {
  std::optional<std::string> path =
      core::find_program(program_beside_us(fmt::format("scaletrain-{}", name)));
  if (!path) path = core::find_program(fmt::format("scaletrain-{}", name));
  if (!path) return;
  std::vector<char*> pointers;
  std::vector<std::string> texts = arguments;
  texts[0] = *path;
  pointers.reserve(texts.size() + 1);
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  std::signal(SIGPIPE, SIG_DFL);
  execv(path->c_str(), pointers.data());
  throw core::UsageError(*path, "cannot be executed: " + core::errno_text(errno), "check the file");
}

[[noreturn]] void refuse_extras(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  const CLI::App* command = &app;
  std::string place = "scaletrain";
  for (auto list = chosen; !list.empty(); list = command->get_subcommands()) {
    command = list.front();
    place += " " + command->get_name();
  }
  const std::vector<std::string> extras = app.remaining(true);
  const std::string flag = extras.front().substr(0, extras.front().find('='));
  if (!flag.starts_with("-")) {
    throw core::UsageError(place, fmt::format("\"{}\" is one argument too many", flag),
                           fmt::format("{} --help lists what is allowed", place));
  }
  std::vector<std::string> known;
  for (const CLI::Option* option : command->get_options()) {
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  }
  throw core::UsageError(
      place, fmt::format("there is no flag {}", flag),
      fmt::format("{} --help lists the flags{}", place, did_you_mean(flag, known)));
}

int parse_and_run(const std::vector<std::string>& arguments) {
  std::vector<std::string> ours(arguments.begin() + 1, arguments.end());
  std::optional<std::vector<std::string>> program;
  int exit_status = 0;
  CLI::App app("Train models on one or many devices.", "scaletrain");
  app.set_version_flag("--version", fmt::format("scaletrain {}", core::version()));
  app.require_subcommand(0, 1);
  add_launch_commands(app, program, exit_status);
  add_recipe_commands(app, exit_status);
  add_checkpoint_commands(app, exit_status);

  if (ours.empty()) {
    std::cerr << app.help();
    return kUsageStatus;
  }
  if (ours[0] == "launch") program = cut_program(ours, *app.get_subcommand("launch"));
  if (!ours[0].starts_with("-")) {
    const std::vector<std::string> known = command_names(app);
    if (std::find(known.begin(), known.end(), ours[0]) == known.end()) {
      become_external(ours[0], {arguments.begin() + 1, arguments.end()});
      throw core::UsageError(
          "scaletrain", fmt::format("there is no command \"{}\"", core::escape_control(ours[0])),
          fmt::format("use one of: {}{}", fmt::join(known, ", "), did_you_mean(ours[0], known)));
    }
  }
  try {
    std::reverse(ours.begin(), ours.end());  // as CLI11 takes them
    app.parse(ours);
  } catch (const CLI::ExtrasError&) {
    refuse_extras(app);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    throw core::UsageError("scaletrain", error.what(), "scaletrain COMMAND --help lists the flags");
  }
  return exit_status;
}

}  // namespace

int run(int argc, char** argv) {
  try {
    tidy_up_process();
    return parse_and_run({argv, argv + argc});
  } catch (const std::exception& error) {
    core::log_line(core::describe(error));
    return static_cast<int>(core::exit_code_of(error));
  }
}

}  // namespace scaletrain::launcher
