#include "app/worker/worker_main.h"

#include <fmt/format.h>
#include <malloc.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <limits>
#include <string_view>

#include "app/worker/bench_command.h"
#include "app/worker/check_command.h"
#include "app/worker/eval_command.h"
#include "app/worker/generate_command.h"
#include "app/worker/import_command.h"
#include "app/worker/layout_command.h"
#include "app/worker/model_command.h"
#include "app/worker/models.h"
#include "app/worker/predict_command.h"
#include "app/worker/registry_command.h"
#include "app/worker/store_command.h"
#include "app/worker/train_command.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/thread_limit.h"

namespace scaletrain::app {
namespace {

constexpr std::string_view kUsage =
    "usage: scaletrain-worker train --recipe PATH [--resume CHECKPOINT]\n"
    "       scaletrain-worker store --fd N\n"
    "       scaletrain-worker generate CHECKPOINT [FLAG...]\n"
    "       scaletrain-worker eval CHECKPOINT [FLAG...]\n"
    "       scaletrain-worker predict CHECKPOINT INPUT... [FLAG...]\n"
    "       scaletrain-worker import SOURCE OUT [FLAG...]\n"
    "       scaletrain-worker bench memory|speed|exposed --recipe PATH --out FILE [FLAG...]\n"
    "       scaletrain-worker layout --recipe PATH --ranks N --ranks-per-node N --out FILE\n"
    "       scaletrain-worker model --recipe PATH --ranks N [--set KEY=VALUE...]\n"
    "       scaletrain-worker check\n"
    "       scaletrain-worker registry FILE\n"
    "       scaletrain-worker loopback cpu|cuda\n"
    "Started by `scaletrain launch`; a person starts that.";

// Keeps memory that a step has freed for the next step. If the allocator returned large blocks to
// the system, each step would cost a page fault for every 4 kB.
void keep_freed_memory() {
  ::mallopt(M_MMAP_MAX, 0);
  ::mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
}

// A thread of LibTorch that cannot start another thread has no caller to report to.
[[noreturn]] void leave_without_threads() {
  try {
    if (const std::exception_ptr error = std::current_exception()) std::rethrow_exception(error);
  } catch (const std::exception& error) {
    core::log_line(core::describe(error));
    if (core::is_thread_refusal(error)) ::_exit(static_cast<int>(core::exit_code_of(error)));
  } catch (...) {  // like any other failure of that kind
  }
  std::abort();
}

// A worker ends only by _exit. This exit is OpenMP's, which could not start a thread and has
// reported it.
void leave_for_library(int /*status*/, void* /*unused*/) {
  core::log_line(fmt::format("{}\n  {}", core::kNoThread, core::kMoreThreads));
  ::_exit(static_cast<int>(core::ExitCode::kMemory));
}

int dispatch(int argc, char** argv, const Additions& additions) {
  const std::string_view command = argc > 1 ? argv[1] : "";
  if (command == "train") return run_train(argc, argv, models_of(additions));
  if (command == "store") return run_store(argc, argv);
  if (command == "check") return run_check();
  if (command == "generate") return run_generate(argc, argv, models_of(additions));
  if (command == "eval") return run_eval(argc, argv, models_of(additions));
  if (command == "predict") return run_predict(argc, argv, models_of(additions));
  if (command == "import") return run_import(argc, argv, models_of(additions));
  if (command == "bench") return run_bench(argc, argv, models_of(additions));
  if (command == "layout") return run_layout(argc, argv, models_of(additions));
  if (command == "model") return run_model(argc, argv, models_of(additions));
  if (command == "loopback") return run_loopback(argc, argv);
  if (command == "registry") return run_registry(argc, argv, *models_of(additions).catalog);
  core::log_line(kUsage);
  return static_cast<int>(core::ExitCode::kUsage);
}

}  // namespace

int worker_main(int argc, char** argv, const Additions& additions) {
  int status = 1;
  std::signal(SIGXFSZ, SIG_IGN);  // a write beyond `ulimit -f` fails with EFBIG and is reported
  std::set_terminate(leave_without_threads);
  ::on_exit(leave_for_library, nullptr);
  keep_freed_memory();
  try {
    status = dispatch(argc, argv, additions);
  } catch (const std::exception& error) {
    core::log_line(core::describe(error));
    status = static_cast<int>(core::exit_code_of(error));
  }
  // Without static destructors: they cost time and could wait for a thread of LibTorch.
  std::fflush(nullptr);
  ::_exit(status);
}

}  // namespace scaletrain::app
