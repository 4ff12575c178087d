// The commands and flags of a program as data, from its CLI11 tree. --help, the man pages, shell
// completion and docs/reference/commands.md are made from it. Each program prints its table with
// --command-table, so that another program can read it.
#pragma once

#include <string>
#include <vector>

#include "lib/core/text/cli_app.h"

namespace scaletrain::core {

struct Flag {
  std::vector<std::string> names;  // "-r", "--redirects"; a second spelling with underscores is
                                   // left out; a positional has one, without a dash
  std::string help;                // a sentence
  std::string variable{};          // "PET_REDIRECTS", or ""
  bool takes_value = false;
  std::string group{"Options"};         // heading in --help
  std::string value{"VALUE"};           // placeholder of the value in --help
  std::string default_value{};          // "" for none, and if the help text names it
  std::vector<std::string> allowed{};   // the only values; empty if there are others
  std::string limits{};                 // "from 1 to 64", or ""
  std::vector<std::string> excludes{};  // flags that cannot be given together with it
  bool required = false;
  bool repeatable = false;

  bool is_positional() const { return !names[0].starts_with("-"); }
};

struct Command {
  std::string name, help;
  std::string examples;  // one command line a line; a line that starts with "# " explains the next
  std::vector<Flag> flags;
  std::vector<Command> commands;
  std::string group{"Commands"};  // heading in the parent command's help
  bool needs_command = false;     // one of `commands` must be given

  const Command* find(const std::string& command) const;  // nullptr if there is none
  const Flag* find_flag(const std::string& flag_name) const;
};

Command table_of(const CLI::App& app);

std::string to_json(const Command& command);
// Throws core::UsageError if the text is not a command table.
Command parse_command_table(const std::string& text);

}  // namespace scaletrain::core
