// The text of --help, made from the command table: wrapped to the terminal, flags under headings,
// defaults and examples.
#pragma once

#include <string>
#include <vector>

#include "lib/core/text/command_table.h"

namespace scaletrain::core {

// Returns the columns for --help: $COLUMNS, else the terminal's width, else 80; at least 40.
int help_width();

// `name` is the command line up to the command: "scaletrain recipe check".
std::string help_text(const Command& command, const std::string& name, int width);

// Returns the facts that a flag's help text does not contain: "Default: 5. Allowed: from 1 to 9."
std::string notes_of(const Flag& flag);

// Returns one line of Command::examples in lines of at most `width`: a command continues after a
// backslash, a comment after "# ".
std::string wrapped_example(const std::string& line, int width, int indent);

// Returns the headings of the command's flags in their order, "Options" last.
std::vector<std::string> groups_of(const Command& command);

// Returns "[OPTIONS] RECIPE [AXIS...]", the arguments of the command.
std::string usage_of(const Command& command);

// Makes `app` and the commands that are added to it later print help_text() for --help.
void use_help_text(CLI::App& app);

// Flags added to `command` during the lifetime of this object are listed under `heading` in --help.
class FlagGroup {
 public:
  FlagGroup(CLI::App& command, const std::string& heading);
  ~FlagGroup();
  FlagGroup(const FlagGroup&) = delete;
  FlagGroup& operator=(const FlagGroup&) = delete;

 private:
  CLI::App& command_;
  std::string before_;
};

// The heading and the examples of one command: "recipe check", "" for the program itself.
struct CommandText {
  const char* command;
  const char* group;  // nullptr for "Commands"
  const char* examples;
};

// Sets the texts of the commands of `app`. Throws CLI::OptionNotFound for a command that is absent.
void set_command_texts(CLI::App& app, const std::vector<CommandText>& texts);

}  // namespace scaletrain::core
