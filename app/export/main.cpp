// scaletrain-export: follows metrics, pictures, histograms and journal of a run and writes them for
// experiment trackers and receivers of events.
//
// The launcher of node 0 starts it, if the recipe has log.to, log.webhook or log.on_event, and ends
// it by closing the pipe that is its standard input. Standard output is a file that the launcher
// reads: a line for each warning and, at the end, the summary. Standard error is
// RUN/logs/export.log.
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lib/core/clock.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/printable.h"
#include "lib/core/text/command_line.h"
#include "lib/core/text/help_text.h"
#include "lib/track/exports.h"
#include "lib/track/run_config.h"

namespace {

namespace core = scaletrain::core;
namespace track = scaletrain::track;

constexpr std::chrono::seconds kDrain{4};  // the launcher waits 5 s
constexpr std::chrono::seconds kOnceLimit{600};
constexpr int kLowPriority = 10;  // nice value: training comes first

struct Arguments {
  track::ExportOptions options;
  track::EventOptions events;
  std::vector<std::string> to;
  bool once = false;
};

// Writes one line to the launcher and to the log. Threads call it too.
void report(const std::string& text) {
  core::log_line(text);
  const std::string line = core::printable_lines(text) + "\n";
  [[maybe_unused]] const ssize_t written = write(STDOUT_FILENO, line.data(), line.size());
}

// Returns when the launcher has closed its pipe.
void wait_for_end() {
  pollfd watched{STDIN_FILENO, POLLIN, 0};
  while (poll(&watched, 1, -1) < 0) continue;
}

int follow(const Arguments& arguments) {
  track::Exports exports(arguments.to, arguments.options, arguments.events,
                         [](const std::string& line) { report("warning: " + line); });
  if (!arguments.once) wait_for_end();
  const bool all_ended = exports.finish(core::now() + (arguments.once ? kOnceLimit : kDrain));
  for (const std::string& line : exports.summary()) report(line);
  for (const std::string& name : exports.unsent()) {
    report("send the rest with: scaletrain export --once --run " + arguments.options.run.string() +
           " --to " + name);
  }
  const bool is_complete = !arguments.once || !exports.lost_some();
  const core::ExitCode code = is_complete ? core::ExitCode::kOk : core::ExitCode::kStorage;
  // A thread that is stuck in a write or a request cannot be joined.
  if (!all_ended) std::_Exit(static_cast<int>(code));
  return static_cast<int>(code);
}

// Returns the name in the run's recipe if the command line has none.
std::string name_of(const Arguments& arguments) {
  if (!arguments.options.name.empty()) return arguments.options.name;
  const nlohmann::ordered_json recipe = track::run_recipe(arguments.options.run);
  const auto name = recipe.find("name");
  if (name != recipe.end() && name->is_string()) return name->get<std::string>();
  throw core::UsageError(arguments.options.run.string(), "has no recipe.json with a name",
                         "name the folder of a run, or use --name");
}

int run(const std::vector<std::string>& command_line) {
  Arguments arguments;
  std::string folder, textfile_folder;
  CLI::App app(
      "Export the metrics of a run to experiment trackers and its events to a webhook or a "
      "command, until standard input ends.",
      "scaletrain-export");
  core::use_help_text(app);
  app.add_option("--run", folder, "Run folder.")->required();
  app.add_option("--name", arguments.options.name, "Run name. Default: that of its recipe.");
  app.add_option("--to", arguments.to,
                 "Tracker: tensorboard, csv, prometheus, wandb, mlflow, trackio or mlperf.");
  app.add_option("--port", arguments.options.port, "Port for Prometheus on 127.0.0.1. 0: none.");
  app.add_option("--textfile-folder", textfile_folder, "Folder for Prometheus textfiles.");
  app.add_option("--webhook", arguments.events.webhook, "URL for events, or env:NAME.");
  app.add_option("--on-event", arguments.events.command, "Shell command for each event.");
  app.add_option("--event", arguments.events.names,
                 "Event that is sent: start, checkpoint, restart, failure or end. Default: all.");
  app.add_option("--journal-from", arguments.events.journal_from,
                 "Byte of journal.jsonl where the events begin. Default: 0.");
  app.add_flag("--once", arguments.once,
               "Export what is there and end, with exit code 74 if something is left.");
  if (!core::parse_command_line(app, command_line)) return 0;
  arguments.options.run = folder;
  arguments.options.textfile_folder = textfile_folder;
  arguments.options.name = name_of(arguments);
  return follow(arguments);
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // a write beyond `ulimit -f` fails with EFBIG and is reported
  setpriority(PRIO_PROCESS, 0, kLowPriority);
  try {
    return run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    core::log_line(core::describe(error));
    return static_cast<int>(core::exit_code_of(error));
  }
}
