// `scaletrain data synth OUT`: labelled pictures of shapes, for trials without data.
#pragma once

namespace CLI {  // NOLINT(readability-identifier-naming)
class App;
}

namespace scaletrain::app {

void add_synth_command(CLI::App& app, int& exit_status);

}  // namespace scaletrain::app
