// `scaletrain k8s RECIPE`: the objects for kubectl that run a recipe.
#pragma once

namespace CLI {  // NOLINT(readability-identifier-naming): the name is CLI11's
class App;
}

namespace scaletrain::launcher {

// Adds the command to `app`. Its callback runs inside app.parse(): it prints YAML and sets
// `exit_status`, or throws core::Error.
void add_k8s_command(CLI::App& app, int& exit_status);

}  // namespace scaletrain::launcher
