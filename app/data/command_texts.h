// Headings and examples of the commands of `scaletrain data`, for --help and the man pages.
#pragma once

#include "lib/core/text/cli_app.h"

namespace scaletrain::app {

// Call after all commands are added.
void set_data_texts(CLI::App& app);

}  // namespace scaletrain::app
