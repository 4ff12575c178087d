#include "lib/core/text/help_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <sstream>

#include "lib/core/text/text.h"

namespace scaletrain::core {
namespace {

constexpr int kUsualWidth = 80;
constexpr int kLeastWidth = 40;
constexpr int kWidestNames = 26;  // longer names of a flag get a line of their own

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

// Appends `text` to `line`, which has `column` characters, in lines of at most `width`; each line
// after the first starts with `indent` blanks, and each but the last ends with `line_end`.
void add_wrapped(std::string& line, std::size_t column, const std::string& text, std::size_t width,
                 std::size_t indent, const std::string& line_end = "") {
  bool at_start = true;
  for (const std::string& word : words_of(text)) {
    const std::size_t room = width - std::min(width, line_end.size());
    if (!at_start && column + 1 + word.size() > room) {
      line += line_end + "\n" + std::string(indent, ' ');
      column = indent;
      at_start = true;
    }
    line += at_start ? word : " " + word;
    column += word.size() + (at_start ? 0 : 1);
    at_start = false;
  }
  line += "\n";
}

// Returns "  NAMES      help" with the help in its own column.
std::string entry(const std::string& names, const std::string& help, int width) {
  const std::size_t column = std::min(kWidestNames, width / 3);
  std::string text = "  " + names;
  if (help.empty()) return text + "\n";
  if (text.size() + 2 > column) text += "\n" + std::string(column, ' ');
  if (text.size() < column) text.resize(column, ' ');
  add_wrapped(text, column, help, width, column);
  return text;
}

std::string flag_names(const Flag& flag) {
  std::string names = fmt::format("{}", fmt::join(flag.names, ", "));
  if (flag.takes_value && !flag.is_positional()) names += " " + flag.value;
  return names;
}

std::string flag_help(const Flag& flag) {
  const std::string notes = notes_of(flag);
  return notes.empty() || flag.help.empty() ? flag.help + notes : flag.help + " " + notes;
}

std::string examples_section(const Command& command, int width) {
  if (command.examples.empty()) return "";
  std::string text = "\nExamples:\n";
  std::istringstream lines(command.examples);
  for (std::string line; std::getline(lines, line);) text += wrapped_example(line, width, 2);
  return text;
}

std::string commands_section(const Command& command, int width) {
  std::string text;
  std::vector<std::string> headings;
  for (const Command& below : command.commands) {
    if (std::find(headings.begin(), headings.end(), below.group) == headings.end()) {
      headings.push_back(below.group);
    }
  }
  for (const std::string& heading : headings) {
    text += fmt::format("\n{}:\n", heading);
    for (const Command& below : command.commands) {
      if (below.group == heading) text += entry(below.name, below.help, width);
    }
  }
  return text;
}

class HelpFormatter : public CLI::FormatterBase {
 public:
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode) const override {
    return help_text(table_of(*app), name, help_width());
  }
};

CLI::App& command_at(CLI::App& app, const std::string& words) {
  CLI::App* command = &app;
  for (const std::string& word : words_of(words)) command = command->get_subcommand(word);
  return *command;
}

}  // namespace

int help_width() {
  const char* const asked = std::getenv("COLUMNS");
  int width = asked == nullptr ? 0 : parse_number<int>(asked).value_or(0);
  winsize size{};
  if (width <= 0 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) width = size.ws_col;
  return width <= 0 ? kUsualWidth : std::max(width, kLeastWidth);
}

std::string notes_of(const Flag& flag) {
  std::vector<std::string> notes;
  if (flag.required && !flag.is_positional()) notes.emplace_back("Required.");
  if (!flag.allowed.empty())
    notes.push_back(fmt::format("Allowed: {}.", fmt::join(flag.allowed, ", ")));
  if (!flag.limits.empty()) notes.push_back(fmt::format("Allowed: {}.", flag.limits));
  if (!flag.default_value.empty()) notes.push_back(fmt::format("Default: {}.", flag.default_value));
  if (!flag.excludes.empty())
    notes.push_back(fmt::format("Not with {}.", fmt::join(flag.excludes, ", ")));
  if (!flag.variable.empty()) notes.push_back(fmt::format("Environment: {}.", flag.variable));
  return fmt::format("{}", fmt::join(notes, " "));
}

std::string wrapped_example(const std::string& line, int width, int indent) {
  const std::string blanks(static_cast<std::size_t>(indent), ' ');
  const bool is_comment = line.starts_with("# ");
  std::string text = blanks;
  if (!is_comment) {
    add_wrapped(text, text.size(), line, width, text.size() + 4, " \\");
    return text;
  }
  std::string words;
  add_wrapped(words, text.size() + 2, line.substr(2), width, text.size() + 2);
  std::istringstream lines(words);
  text.clear();
  for (std::string part; std::getline(lines, part);) {
    text += blanks + "# " + part.substr(part.find_first_not_of(' ')) + "\n";
  }
  return text;
}

std::vector<std::string> groups_of(const Command& command) {
  std::vector<std::string> groups;
  for (const Flag& flag : command.flags) {
    if (flag.is_positional() || flag.group == Flag{}.group) continue;
    if (std::find(groups.begin(), groups.end(), flag.group) == groups.end()) {
      groups.push_back(flag.group);
    }
  }
  groups.push_back(Flag{}.group);
  return groups;
}

std::string usage_of(const Command& command) {
  std::string text = "[OPTIONS]";
  for (const Flag& flag : command.flags) {
    if (!flag.is_positional()) continue;
    const std::string name = flag.names[0] + (flag.repeatable ? "..." : "");
    text += flag.required ? " " + name : fmt::format(" [{}]", name);
  }
  if (!command.commands.empty()) text += command.needs_command ? " COMMAND" : " [COMMAND]";
  return text;
}

std::string help_text(const Command& command, const std::string& name, int width) {
  std::string text;
  add_wrapped(text, 0, command.help, width, 0);
  text += "\n";
  add_wrapped(text, 0, fmt::format("Usage: {} {}", name, usage_of(command)), width, 7);
  std::string arguments;
  for (const Flag& flag : command.flags) {
    if (flag.is_positional()) arguments += entry(flag_names(flag), flag_help(flag), width);
  }
  if (!arguments.empty()) text += "\nArguments:\n" + arguments;
  text += commands_section(command, width);
  for (const std::string& group : groups_of(command)) {
    text += fmt::format("\n{}:\n", group);
    for (const Flag& flag : command.flags) {
      if (!flag.is_positional() && flag.group == group) {
        text += entry(flag_names(flag), flag_help(flag), width);
      }
    }
  }
  return text + examples_section(command, width);
}

void use_help_text(CLI::App& app) {
  app.formatter(std::make_shared<HelpFormatter>());
  app.set_help_flag("-h,--help", "print this help");
}

FlagGroup::FlagGroup(CLI::App& command, const std::string& heading)
    : command_(command), before_(command.option_defaults()->get_group()) {
  command_.option_defaults()->group(heading);
}

FlagGroup::~FlagGroup() { command_.option_defaults()->group(before_); }

void set_command_texts(CLI::App& app, const std::vector<CommandText>& texts) {
  for (const CommandText& text : texts) {
    CLI::App& command = command_at(app, text.command);
    command.footer(text.examples);
    if (text.group != nullptr) command.group(text.group);
  }
}

}  // namespace scaletrain::core
