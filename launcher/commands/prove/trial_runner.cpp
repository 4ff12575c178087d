#include "launcher/commands/prove/trial_runner.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <utility>

#include "launcher/platform/stop_signals.h"
#include "lib/core/descriptor.h"
#include "lib/core/disk/disk.h"
#include "lib/core/error.h"
#include "lib/core/process/programs.h"
#include "lib/format/checkpoint/checkpoint_folder.h"
#include "lib/recipe/load.h"

namespace scaletrain::launcher {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFaultVariable = "SCALETRAIN_FAULT";

std::string fault_of(const PlannedKill& kill) {
  return fmt::format("kill@{},{}", kill.step, kill.rank);
}

void show_end(const fs::path& log) {
  constexpr std::int64_t kMostLogBytes = 1 << 28;
  constexpr std::size_t kShownBytes = 4096;
  std::string text = core::read_file(log, kMostLogBytes, core::ExitCode::kData);
  if (text.size() > kShownBytes) text.erase(0, text.find('\n', text.size() - kShownBytes) + 1);
  std::fputs(text.c_str(), stderr);
}

}  // namespace

core::ExitStatus TrialRunner::launch(const std::vector<std::string>& words,
                                     const std::optional<std::string>& fault, const fs::path& log) {
  constexpr int kPollMs = 100;
  const core::Descriptor nothing = core::open_nothing();
  const core::Descriptor output = core::open_to_append(log, "check the temporary folder");
  core::SpawnRequest request{.arguments = words,
                             .variables = {},
                             .descriptors = {{nothing.get(), STDIN_FILENO},
                                             {output.get(), STDOUT_FILENO},
                                             {output.get(), STDERR_FILENO}}};
  if (fault) request.variables[kFaultVariable] = *fault;
  const core::Process process = core::Process::spawn(request);
  StopSignals& stops = scratch_.stops();
  int stop_signal = 0;
  std::optional<core::ExitStatus> status;
  while (!status) {
    std::array<pollfd, 2> watched{pollfd{process.pidfd(), POLLIN, 0},
                                  pollfd{stops.fd(), POLLIN, 0}};
    poll(watched.data(), watched.size(), kPollMs);
    status = process.ended();
    if (const std::optional<int> signal = stops.next()) stop_signal = *signal;
    // The second SIGINT kills the workers, which have nothing to save.
    if (!status && stop_signal != 0) kill(process.pid(), SIGINT);
  }
  if (stop_signal != 0) throw_stopped("prove", stop_signal);
  return *status;
}

std::string TrialRunner::train(const Trial& trial, const fs::path& folder) {
  constexpr int kKilled = 128 + SIGKILL;
  recipe::Recipe recipe = trial.recipe;
  recipe.output = folder.string();
  const fs::path file = folder.string() + ".json", log = folder.string() + ".log";
  core::write_durably(core::system_disk(), file, recipe::to_json(recipe));
  const std::string scaletrain = core::program_beside_us("scaletrain");
  const std::string ranks = fmt::format("{}", trial.ranks);
  std::vector<std::string> words{scaletrain, "launch", "--nnodes",   "1",
                                 "--nproc",  ranks,    file.string()};
  for (const PlannedKill& kill : trial.kills) {
    const core::ExitStatus status = launch(words, fault_of(kill), log);
    if (status.shell_code() != kKilled) {
      show_end(log);
      return fmt::format("it ended with {} where rank {} was to be killed at step {}",
                         core::to_text(status), kill.rank, kill.step);
    }
    words = {scaletrain, "resume", "--nproc", ranks, folder.string()};
  }
  const core::ExitStatus status =
      launch(words, trial.kills.empty() ? std::nullopt : std::optional<std::string>(""), log);
  if (status.ok()) return "";
  show_end(log);
  return fmt::format("it ended with {}", core::to_text(status));
}

TrialResult TrialRunner::run(const Trial& trial) {
  TrialResult result;
  result.folder = scratch_.file(fmt::format("run-{}", ++count_));
  result.failure = train(trial, result.folder);
  if (!result.failure.empty()) return result;
  result.run = proven_run(read_metrics(result.folder),
                          format::model_digest(format::checkpoint_at(result.folder)));
  return result;
}

const TrialResult& TrialRunner::reference(const Trial& trial) {
  const std::string key = fmt::format("{} {}", trial.ranks, recipe::to_json(trial.recipe));
  const auto found = references_.find(key);
  if (found != references_.end()) return found->second;
  return references_.emplace(key, run(trial)).first->second;
}

}  // namespace scaletrain::launcher
