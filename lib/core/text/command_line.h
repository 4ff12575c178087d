// Command lines of the programs: CLI11 with the error texts of scaletrain.
//
// The app has the name that a user types ("scaletrain", "scaletrain data"); its subcommands run in
// their callbacks.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lib/core/text/cli_app.h"

namespace scaletrain::core {

// Returns the names of the app's subcommands.
std::vector<std::string> command_names(const CLI::App& app);

// Throws core::UsageError for an unknown subcommand `name`, listing the known ones, `others`
// included, and the nearest.
[[noreturn]] void refuse_command(const CLI::App& app, const std::string& name,
                                 const std::vector<std::string>& others = {});

// Flushes stdout. Throws core::StorageError if not all output could be written (a full disk with `>
// FILE`); a closed reader (`| head`) is no error.
void flush_output();

// Parses `arguments` (without the program's name) and runs the callbacks. False after --help,
// --version or --command-table (lib/core/text/command_table.h), which print. Throws
// core::UsageError for unknown arguments, naming the nearest flag, and for a removed working
// directory; also the errors of the callbacks.
//
// `hint` returns a remedy for an unknown word, or "".
using WordHint = std::function<std::string(const std::string& command, const std::string& word)>;
bool parse_command_line(CLI::App& app, std::vector<std::string> arguments,
                        const WordHint& hint = nullptr);

}  // namespace scaletrain::core
