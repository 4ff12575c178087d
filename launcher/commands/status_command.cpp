#include <unistd.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <chrono>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "launcher/commands/commands.h"
#include "launcher/commands/run_status.h"
#include "lib/core/text/json_text.h"

namespace scaletrain::launcher {
namespace {

using Json = nlohmann::ordered_json;

struct StatusArguments {
  std::string run;
  bool as_json = false, watch = false;
};

constexpr std::chrono::seconds kLookAgain{1};
constexpr const char* kClearScreen = "\x1b[H\x1b[2J";

// False: nobody reads on.
bool show(const Json& status, const StatusArguments& arguments) {
  std::string text = status_text(status);
  if (arguments.as_json) {
    text = core::json_text(status, arguments.watch ? -1 : 1) + "\n";
  } else if (arguments.watch && isatty(STDOUT_FILENO) == 1) {
    text.insert(0, kClearScreen);
  }
  return std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0;
}

void show_status(const StatusArguments& arguments) {
  while (true) {
    const Json status = run_status(arguments.run);
    const bool shown = show(status, arguments);
    if (!arguments.watch || !shown || status["state"] != "running") return;
    std::this_thread::sleep_for(kLookAgain);
  }
}

}  // namespace

void add_status_command(CLI::App& app, int& exit_status) {
  const auto arguments = std::make_shared<StatusArguments>();
  CLI::App* const command =
      app.add_subcommand("status", "Show the status of a run: ranks, steps, speed, checkpoint");
  command->add_option("RUN", arguments->run, "Run folder.")->required()->type_name("RUN");
  command->add_flag("--json", arguments->as_json, "Print one JSON object instead of text.");
  command->add_flag("--watch", arguments->watch,
                    "Print the status every second until the run has ended.");
  command->callback([arguments, &exit_status] {
    show_status(*arguments);
    exit_status = 0;
  });
}

}  // namespace scaletrain::launcher
