// Headings and examples of the commands of `scaletrain data`, for --help and the man pages.
#pragma once

namespace CLI {  // NOLINT(readability-identifier-naming): the name is CLI11's
class App;
}

namespace scaletrain::app {

// Call after all commands are added.
void set_data_texts(CLI::App& app);

}  // namespace scaletrain::app
