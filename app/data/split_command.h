// `scaletrain data split PATH... --out FOLDER`: shards to training, validation and test shards.
#pragma once

namespace CLI {  // NOLINT(readability-identifier-naming)
class App;
}

namespace scaletrain::app {

void add_split_command(CLI::App& app, int& exit_status);

}  // namespace scaletrain::app
