// `scaletrain checkpoint reshard CHECKPOINT -o FOLDER`: merges the shards of a checkpoint into
// complete files.
#pragma once

namespace CLI {  // NOLINT(readability-identifier-naming): the name is CLI11's
class App;
}

namespace scaletrain::launcher {

// Adds `reshard` to `checkpoint`.
void add_checkpoint_reshard(CLI::App& checkpoint, int& exit_status);

}  // namespace scaletrain::launcher
