// The flags of a command line that was parsed, with where each value came from.
#pragma once

#include <string>
#include <vector>

#include "launcher/commands/explain/explanation.h"
#include "lib/core/text/cli_app.h"

namespace scaletrain::launcher {

using Words = std::vector<std::string>;

// Returns the option's long name without dashes, as the table of flags shows it.
std::string long_name(const CLI::Option& option);
// Returns where the option's value comes from: the flag as it was typed, the name of its
// environment variable, or "default".
std::string origin(const CLI::Option& option, const Words& words);
// Returns the value that was given; "on" or "off" for a flag without a value. If a flag that takes
// one value was repeated, returns the last value.
std::string given_value(const CLI::Option& option);

// All of them; values that were not given are the defaults that the options know.
std::vector<Explained> flag_rows(const CLI::App& command, const Words& words);

}  // namespace scaletrain::launcher
