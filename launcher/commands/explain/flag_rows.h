// The flags of a parsed command line, with the origin of each value.
#pragma once

#include <string>
#include <vector>

#include "launcher/commands/explain/explanation.h"
#include "lib/core/text/cli_app.h"

namespace scaletrain::launcher {

using Words = std::vector<std::string>;

// Returns the option's long name without dashes, as the table of flags shows it.
std::string long_name(const CLI::Option& option);
// Returns the origin of the option's value: the flag as typed, the name of its environment
// variable, or "default".
std::string origin(const CLI::Option& option, const Words& words);
// Returns the value that was given; "on" or "off" for a flag without a value. If a flag that takes
// one value was repeated, returns the last value.
std::string given_value(const CLI::Option& option);

// Returns rows for all flags; values that were not given are the defaults.
std::vector<Explained> flag_rows(const CLI::App& command, const Words& words);

}  // namespace scaletrain::launcher
