// Shared parts of the programs' command lines: CLI11, with errors as ours.
//
// The app is named as a person types it ("scaletrain", "scaletrain data"); its subcommands run in
// their callbacks.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lib/core/text/cli_app.h"

namespace scaletrain::core {

// The names of the app's subcommands.
std::vector<std::string> command_names(const CLI::App& app);

// Throws core::UsageError: there is no subcommand `name`; it names those that are, `others` among
// them, and the nearest.
[[noreturn]] void refuse_command(const CLI::App& app, const std::string& name,
                                 const std::vector<std::string>& others = {});

// Writes what stdout still holds. Throws core::StorageError where not all that was printed could be
// written (a full disk behind `> FILE`); a reader that has gone (`| head`) is no error.
void flush_output();

// Parses `arguments` (without the program's name) and runs the callbacks. False after --help,
// --version or --command-table (lib/core/text/command_table.h), which print. Throws
// core::UsageError for what the app does not take, naming the nearest flag, and where the working
// directory was removed; and whatever a callback throws.
//
// `hint` says more about a word that is not taken, as a remedy; "" for nothing.
using WordHint = std::function<std::string(const std::string& command, const std::string& word)>;
bool parse_command_line(CLI::App& app, std::vector<std::string> arguments,
                        const WordHint& hint = nullptr);

}  // namespace scaletrain::core
