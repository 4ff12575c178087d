// The commands and flags of a program as data, from its CLI11 tree: what completion and the manual
// are made of. Every program of ours prints its own with --command-table, so that another can ask.
#pragma once

#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming)
class App;
}

namespace scaletrain::core {

struct Flag {
  std::vector<std::string> names;  // "-r", "--redirects"; a second spelling with underscores is
                                   // left out; a positional has one, without a dash
  std::string help;
  std::string variable{};  // "PET_REDIRECTS", or ""
  bool takes_value = false;

  bool is_positional() const { return !names[0].starts_with("-"); }
};

struct Command {
  std::string name, help, footer;
  std::vector<Flag> flags;
  std::vector<Command> commands;

  const Command* find(const std::string& command) const;  // nullptr where there is none
  const Flag* find_flag(const std::string& flag_name) const;
};

Command table_of(const CLI::App& app);

std::string to_json(const Command& command);
// Throws core::UsageError where the text is no such table.
Command parse_command_table(const std::string& text);

}  // namespace scaletrain::core
