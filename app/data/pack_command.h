// `scaletrain data pack SRC OUT`: a folder of class folders, or a list, to shards.
#pragma once

namespace CLI {  // NOLINT(readability-identifier-naming)
class App;
}

namespace scaletrain::app {

void add_pack_command(CLI::App& app, int& exit_status);

}  // namespace scaletrain::app
