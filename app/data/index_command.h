// `scaletrain data index PATH... [--hash]`: writes the indexes of shards.
#pragma once

namespace CLI {  // NOLINT(readability-identifier-naming)
class App;
}

namespace scaletrain::app {

void add_index_command(CLI::App& app, int& exit_status);

}  // namespace scaletrain::app
