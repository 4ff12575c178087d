// `scaletrain data bench RECIPE|SHARD...`: images a second of each stage, and what limits.
#pragma once

namespace CLI {  // NOLINT(readability-identifier-naming)
class App;
}

namespace scaletrain::app {

void add_bench_command(CLI::App& app, int& exit_status);

}  // namespace scaletrain::app
