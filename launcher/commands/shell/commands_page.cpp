#include "launcher/commands/shell/commands_page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lib/core/text/help_text.h"

namespace scaletrain::launcher {
namespace {

constexpr const char* kIntroduction =
    R"(# Commands and flags

Written by `scaletrain help --markdown`; a test compares this file with it.

`scaletrain COMMAND --help` prints the same for one command, and `scaletrain man COMMAND` shows it as a page of the
manual. A flag and its value may be written as `--flag value` or `--flag=value`.
)";

// Escapes text for Markdown, also inside table cells.
std::string markdown(const std::string& text) {
  std::string result;
  for (const char letter : text) {
    if (letter == '|' || letter == '*' || letter == '<' || letter == '[') result += '\\';
    result += letter;
  }
  return result;
}

std::string row(const core::Flag& flag) {
  std::string names;
  for (const std::string& name : flag.names) {
    const bool has_value = flag.takes_value && !flag.is_positional();
    names +=
        fmt::format("{}`{}{}`", names.empty() ? "" : ", ", name, has_value ? " " + flag.value : "");
  }
  const std::string notes = core::notes_of(flag);
  return fmt::format("| {} | {}{}{} |\n", names, markdown(flag.help), notes.empty() ? "" : " ",
                     markdown(notes));
}

std::string table_of(const std::string& heading, const std::string& rows) {
  return rows.empty() ? "" : fmt::format("\n| {} | meaning |\n|---|---|\n{}", heading, rows);
}

void add_command(const core::Command& command, const std::string& name, int depth,
                 std::string& text) {
  text += fmt::format("\n{} {}\n\n{}\n\n```text\n{} {}\n```\n", depth == 1 ? "##" : "###",
                      name.substr(name.find(' ') + 1), markdown(command.help), name,
                      core::usage_of(command));
  std::string arguments;
  for (const core::Flag& flag : command.flags) {
    if (flag.is_positional()) arguments += row(flag);
  }
  text += table_of("argument", arguments);
  for (const std::string& group : core::groups_of(command)) {
    std::string rows;
    for (const core::Flag& flag : command.flags) {
      // -h is the same everywhere.
      if (!flag.is_positional() && flag.group == group && flag.names[0] != "-h") rows += row(flag);
    }
    text += table_of(group, rows);
  }
  if (!command.examples.empty()) {
    text += fmt::format("\nExamples:\n\n```text\n{}\n```\n", command.examples);
  }
  for (const core::Command& below : command.commands) {
    add_command(below, name + " " + below.name, depth + 1, text);
  }
}

}  // namespace

std::string commands_page(const core::Command& table) {
  std::string text = kIntroduction;
  for (const core::Command& command : table.commands) {
    add_command(command, table.name + " " + command.name, 1, text);
  }
  return text;
}

}  // namespace scaletrain::launcher
