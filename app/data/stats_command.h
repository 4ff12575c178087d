// `scaletrain data stats PATH...`: what is in shards: classes, sizes, formats, pixels.
#pragma once

namespace CLI {  // NOLINT(readability-identifier-naming)
class App;
}

namespace scaletrain::app {

void add_stats_command(CLI::App& app, int& exit_status);

}  // namespace scaletrain::app
