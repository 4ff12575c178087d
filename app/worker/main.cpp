// scaletrain-worker: one process per device.
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <string_view>

#include "app/worker/check_command.h"
#include "app/worker/store_command.h"
#include "app/worker/train_command.h"
#include "lib/core/error.h"
#include "lib/core/log.h"

namespace {

constexpr std::string_view kUsage =
    "usage: scaletrain-worker train --recipe PATH [--resume CHECKPOINT]\n"
    "       scaletrain-worker store --fd N\n"
    "       scaletrain-worker check\n"
    "       scaletrain-worker loopback cpu|cuda\n"
    "Started by `scaletrain launch`; a person starts that.";

int dispatch(int argc, char** argv) {
  const std::string_view command = argc > 1 ? argv[1] : "";
  if (command == "train") return scaletrain::app::run_train(argc, argv);
  if (command == "store") return scaletrain::app::run_store(argc, argv);
  if (command == "check") return scaletrain::app::run_check();
  if (command == "loopback") return scaletrain::app::run_loopback(argc, argv);
  scaletrain::core::log_line(kUsage);
  return static_cast<int>(scaletrain::core::ExitCode::kUsage);
}

}  // namespace

int main(int argc, char** argv) {
  int status = 1;
  try {
    status = dispatch(argc, argv);
  } catch (const std::exception& error) {
    scaletrain::core::log_line(scaletrain::core::describe(error));
    status = static_cast<int>(scaletrain::core::exit_code_of(error));
  }
  // Without static destructors: they cost time and could wait for a thread of LibTorch.
  std::fflush(nullptr);
  ::_exit(status);
}
