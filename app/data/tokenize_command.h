// `scaletrain data tokenize TEXT... --out FOLDER`: text to files of tokens.
#pragma once

namespace CLI {  // NOLINT(readability-identifier-naming)
class App;
}

namespace scaletrain::app {

void add_tokenize_command(CLI::App& app, int& exit_status);

}  // namespace scaletrain::app
