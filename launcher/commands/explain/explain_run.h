// `explain run RUN`: the story of a run over all attempts.
#pragma once

namespace CLI {  // NOLINT(readability-identifier-naming): the name is CLI11's
class App;
}

namespace scaletrain::launcher {

void add_explained_story(CLI::App& explain, int& exit_status);

}  // namespace scaletrain::launcher
