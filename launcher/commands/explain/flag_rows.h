// The flags of a command line that was parsed, with where each value came from.
#pragma once

#include <string>
#include <vector>

#include "launcher/commands/explain/explanation.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the name is CLI11's
class App;
class Option;
}  // namespace CLI

namespace scaletrain::launcher {

using Words = std::vector<std::string>;

// The name without dashes by which a table calls the option.
std::string long_name(const CLI::Option& option);
// The word with which a person gave the option, else its variable, else "default".
std::string origin(const CLI::Option& option, const Words& words);
// The value that was given, "on" or "off" for a flag without a value; the last of several if only
// one is used.
std::string given_value(const CLI::Option& option);

// All of them; values that were not given are the defaults that the options know.
std::vector<Explained> flag_rows(const CLI::App& command, const Words& words);

}  // namespace scaletrain::launcher
