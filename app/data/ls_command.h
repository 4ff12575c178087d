// `scaletrain data ls PATH...`: the samples of shards.
#pragma once

namespace CLI {  // NOLINT(readability-identifier-naming)
class App;
}

namespace scaletrain::app {

void add_ls_command(CLI::App& app, int& exit_status);

}  // namespace scaletrain::app
