// `scaletrain data import KIND SRC... OUT`: data sets of other formats to shards.
#pragma once

namespace CLI {  // NOLINT(readability-identifier-naming)
class App;
}

namespace scaletrain::app {

void add_import_command(CLI::App& app, int& exit_status);

}  // namespace scaletrain::app
