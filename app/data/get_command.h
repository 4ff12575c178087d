// `scaletrain data get KEY PATH...`: one sample out of shards.
#pragma once

namespace CLI {  // NOLINT(readability-identifier-naming)
class App;
}

namespace scaletrain::app {

void add_get_command(CLI::App& app, int& exit_status);

}  // namespace scaletrain::app
