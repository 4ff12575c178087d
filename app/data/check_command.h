// `scaletrain data check PATH...`: everything that is wrong with shards, at once.
#pragma once

namespace CLI {  // NOLINT(readability-identifier-naming)
class App;
}

namespace scaletrain::app {

void add_check_command(CLI::App& app, int& exit_status);

}  // namespace scaletrain::app
