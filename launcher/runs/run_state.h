// State of a run, judged from its folder alone.
#pragma once

#include <filesystem>
#include <string>

namespace scaletrain::launcher {

struct RunState {
  // "running": its launcher lives. "dead": its launcher was killed, or its machine went down.
  // "finished", "failed", "stopped".
  std::string state;
  std::string why{};  // verdict of a failure, result of a finished run; "": not known
};

RunState run_state(const std::filesystem::path& run);

}  // namespace scaletrain::launcher
