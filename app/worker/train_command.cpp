#include "app/worker/train_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "app/worker/torch_error.h"
#include "lib/core/call_every.h"
#include "lib/core/error.h"
#include "lib/core/job/worker_env.h"
#include "lib/core/log.h"
#include "lib/core/process/beat.h"
#include "lib/core/process/lifeline.h"
#include "lib/core/process/planted_delay.h"
#include "lib/core/process/signals.h"
#include "lib/core/process/time_ledger.h"
#include "lib/observe/terminal.h"
#include "lib/recipe/load.h"
#include "lib/train/loop/trainer.h"

namespace scaletrain::app {
namespace {

int report(const core::Error& error, const core::WorkerEnv& env, std::int64_t step) {
  core::log_line(error.what());
  const int status = static_cast<int>(error.exit_code());
  core::write_error_file(env, error.what(), status, step);
  return status;
}

constexpr std::chrono::milliseconds kLookForStopEvery{20};

// Leaves if a stop was requested before training begins: there is nothing to save, and LibTorch
// waits for the other ranks without reacting to it. Decoupled replicas wait for nobody.
void leave_if_stopped() {
  if (core::stop_reason() == core::StopReason::kNone) return;
  const bool interrupted = core::stop_reason() == core::StopReason::kInterrupt;
  core::log("was asked to stop before training began");
  std::fflush(nullptr);
  ::_exit(
      static_cast<int>(interrupted ? core::ExitCode::kInterrupted : core::ExitCode::kTemporary));
}

// A worker's standard error is a file in the run's folder. Warnings of rank 0 are shown on the
// console too, above the progress bar, which is redrawn.
void show_warnings(int console) {
  constexpr int kWaitMs = 100;
  const std::string clear = isatty(console) == 1 ? "\r\x1b[K" : "";
  core::set_warning_listener([console, clear](const std::string& line) {
    observe::offer(console, clear + line + "\n", kWaitMs);
  });
}

}  // namespace

int run_train(int argc, char** argv, const Models& models) {
  CLI::App options("execute a recipe as one rank");
  std::string recipe_path;
  std::optional<std::string> resume;
  options.add_option("--recipe", recipe_path, "the resolved recipe")->required();
  options.add_option("--resume", resume, "a checkpoint's folder, verified");
  try {
    options.parse(argc - 1, argv + 1);
  } catch (const CLI::ParseError& error) {
    core::log_line(error.what());
    return static_cast<int>(core::ExitCode::kUsage);
  }

  core::TimeLedger times;
  const core::LedgerOfThread use_times(&times);
  core::install_stop_handlers();
  const core::WorkerEnv env = core::read_worker_env();
  if (env.world_size > 1) core::set_log_prefix(fmt::format("[rank {}] ", env.rank));
  if (env.console_fd) show_warnings(*env.console_fd);
  std::optional<core::Lifeline> lifeline;
  if (env.lifeline_fd) {
    lifeline.emplace(*env.lifeline_fd, static_cast<int>(core::ExitCode::kTemporary));
  }

  core::Beat beat;
  if (env.beat_fd) {
    beat = core::Beat(*env.beat_fd);
    beat.offer_stacks(*env.beat_fd);
  }

  std::unique_ptr<train::Trainer> trainer;
  const auto step = [&] { return trainer ? trainer->step() : -1; };
  int status = 0;
  try {
    std::optional<std::filesystem::path> checkpoint;
    if (resume) checkpoint = *resume;
    core::delay_if_planted(core::DelayPlace::kStart);
    {
      std::optional<std::jthread> early_stop =
          core::call_every(kLookForStopEvery, leave_if_stopped);
      trainer = std::make_unique<train::Trainer>(
          recipe::load_recipe(recipe_path, {}, models.catalog), env, checkpoint, beat,
          models.factories, [&] { early_stop.reset(); });
    }
    status = static_cast<int>(trainer->run());
  } catch (const core::Error& error) {
    status = report(error, env, step());
  } catch (const std::exception& error) {
    status = report(*translate(error, env.rank), env, step());
  }
  // Not destroyed: after a failure its threads may wait for a lost peer; main ends the process at
  // once.
  static_cast<void>(trainer.release());
  return status;
}

}  // namespace scaletrain::app
