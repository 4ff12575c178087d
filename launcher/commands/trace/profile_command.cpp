// `profile`: requests a trace of a running job's next steps.
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include "launcher/commands/commands.h"
#include "launcher/commands/trace/trace_wait.h"
#include "launcher/jobs/checks/run_folder.h"
#include "lib/core/disk/disk.h"
#include "lib/core/error.h"
#include "lib/core/printable.h"
#include "lib/core/text/text.h"
#include "lib/format/checkpoint/run_requests.h"

namespace scaletrain::launcher {
namespace {

struct ProfileArguments {
  std::string run;
  std::int64_t steps = 5;
  bool wait = false;
};

constexpr std::chrono::milliseconds kLookForTraces{100};

void print_traces(const ProfileArguments& arguments, const TracesBefore& before) {
  bool has_ended = false;
  const auto pause = [&] {
    if (has_ended) {
      throw core::StoppedError(arguments.run,
                               "the run ended before all ranks had written the trace",
                               "see the run's log");
    }
    std::this_thread::sleep_for(kLookForTraces);
    has_ended = !is_running(arguments.run);  // then one look more
  };
  for (const std::filesystem::path& file : await_trace(arguments.run, before, pause)) {
    std::printf("%s\n", core::printable(file.string()).c_str());
  }
}

void request_profile(const ProfileArguments& arguments) {
  if (!is_running(arguments.run)) {
    throw core::UsageError(arguments.run, "no run is running in this folder",
                           "name a running run's folder, or trace a new run with "
                           "--set profile.steps=N");
  }
  const TracesBefore before = traces_of(arguments.run);
  format::request_trace(core::system_disk(), arguments.run, arguments.steps);
  if (arguments.wait) return print_traces(arguments, before);
  const std::string run = core::printable(arguments.run);
  std::printf("%s: asked for a trace of the next %s; its files are %s/profile/step-S-rank-R.json\n",
              run.c_str(), core::counted(arguments.steps, "step").c_str(), run.c_str());
}

}  // namespace

void add_profile_command(CLI::App& app, int& exit_status) {
  const auto arguments = std::make_shared<ProfileArguments>();
  CLI::App* const command =
      app.add_subcommand("profile", "Trace the next steps of a running job on all ranks");
  command->add_option("RUN", arguments->run, "Run folder.")->required()->type_name("RUN");
  command
      ->add_option("--steps", arguments->steps,
                   "Number of steps to trace. Traced steps are slower, and a trace takes about "
                   "2.5 kB of memory for each operation. Default: 5.")
      ->check(CLI::Range(std::int64_t{1}, format::kMaxTraceSteps))
      ->type_name("N");
  command->add_flag("--wait", arguments->wait,
                    "Wait until all ranks have written their files and print their paths.");
  command->callback([arguments, &exit_status] {
    request_profile(*arguments);
    exit_status = 0;
  });
}

}  // namespace scaletrain::launcher
