// `scaletrain queue` and `scaletrain sweep`: several runs on this machine's devices.
#pragma once

namespace CLI {  // NOLINT(readability-identifier-naming)
class App;
}

namespace scaletrain::launcher {

// Adds both commands. Their callbacks run the jobs and set `exit_status` (run_queue), or throw
// core::Error for a recipe that is wrong before anything is started.
void add_queue_commands(CLI::App& app, int& exit_status);

}  // namespace scaletrain::launcher
