// The flag --weights, which selects the trained or the averaged weights of a checkpoint.
#pragma once

#include <string>

#include "lib/core/text/cli_app.h"

namespace scaletrain::recipe {

// Adds the flag; `weights` is set to an argument for format::weights_file().
void add_weights_flag(CLI::App& command, std::string& weights);

}  // namespace scaletrain::recipe
