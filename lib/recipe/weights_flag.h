// --weights: which of a checkpoint's weights a command takes.
#pragma once

#include <string>

#include "lib/core/text/cli_app.h"

namespace scaletrain::recipe {

// `weights` becomes what format::weights_file takes.
void add_weights_flag(CLI::App& command, std::string& weights);

}  // namespace scaletrain::recipe
