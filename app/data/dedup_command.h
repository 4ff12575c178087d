// `scaletrain data dedup PATH...`: images that are there more than once, exactly or nearly.
#pragma once

namespace CLI {  // NOLINT(readability-identifier-naming)
class App;
}

namespace scaletrain::app {

void add_dedup_command(CLI::App& app, int& exit_status);

}  // namespace scaletrain::app
