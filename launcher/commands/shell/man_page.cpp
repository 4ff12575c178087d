#include "launcher/commands/shell/man_page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "lib/core/version.h"

namespace scaletrain::launcher {
namespace {

// Text that roff prints as it is.
std::string roff(const std::string& text) {
  std::string result;
  bool at_line_start = true;
  for (const char letter : text) {
    if (at_line_start && (letter == '.' || letter == '\'')) result += "\\&";
    at_line_start = letter == '\n';
    if (letter == '\\') {
      result += "\\e";
    } else if (letter == '-') {
      result += "\\-";
    } else {
      result += letter;
    }
  }
  return result;
}

std::string upper(std::string text) {
  for (char& letter : text) {
    if (letter >= 'a' && letter <= 'z') letter = static_cast<char>(letter - 'a' + 'A');
  }
  return text;
}

std::string flag_entry(const core::Flag& flag) {
  std::string text =
      fmt::format(".TP\n\\fB{}\\fR", roff(fmt::format("{}", fmt::join(flag.names, ", "))));
  if (flag.takes_value && !flag.is_positional()) text += " \\fIVALUE\\fR";
  text += "\n" + roff(flag.help.empty() ? "prints this help" : flag.help);
  if (!flag.variable.empty()) text += roff(fmt::format(" ({})", flag.variable));
  return text + "\n";
}

// A line for the command itself, where it takes something or has none below; one for those below.
std::string synopsis(const core::Command& command, const std::string& name) {
  std::string words;
  for (const core::Flag& flag : command.flags) {
    if (flag.is_positional()) words += fmt::format(" [\\fI{}\\fR]", roff(flag.names[0]));
  }
  std::string own = fmt::format("\\fB{}\\fR [\\fIFLAGS\\fR]{}\n", roff(name), words);
  if (command.commands.empty()) return own;
  std::string below = fmt::format("\\fB{}\\fR \\fICOMMAND\\fR [\\fIFLAGS\\fR]\n", roff(name));
  return words.empty() ? below : own + ".br\n" + below;
}

void add_flags(const core::Command& command, std::string& text) {
  for (const core::Flag& flag : command.flags) text += flag_entry(flag);
}

void add_commands(const core::Command& command, const std::string& name, std::string& text) {
  for (const core::Command& below : command.commands) {
    const std::string full = name + " " + below.name;
    text +=
        fmt::format(".SS {}\n{}.\n.PP\n{}", roff(full), roff(below.help), synopsis(below, full));
    add_flags(below, text);
    add_commands(below, full, text);
  }
}

}  // namespace

std::string man_page(const core::Command& command, const std::string& name) {
  std::string page = name;
  std::replace(page.begin(), page.end(), ' ', '-');
  std::string text = fmt::format(".TH {} 1 \"\" \"scaletrain {}\" \"scaletrain\"\n",
                                 roff(upper(page)), core::version());
  text += fmt::format(".SH NAME\n{} \\- {}\n", roff(page), roff(command.help));
  text += ".SH SYNOPSIS\n" + synopsis(command, name);
  if (!command.footer.empty()) {
    text += ".PP\n.nf\n" + roff(command.footer) + "\n.fi\n";
  }
  if (!command.flags.empty()) {
    text += ".SH OPTIONS\n";
    add_flags(command, text);
  }
  if (!command.commands.empty()) {
    text += ".SH COMMANDS\n";
    add_commands(command, name, text);
  }
  text +=
      ".SH EXIT STATUS\n0: done. 1: a program failed, or an error of our own. 2: the command or "
      "the recipe is wrong.\n65, 71, 74, 75, 76, 77, 130, 128+n: see "
      "docs/reference/exit\\-codes.md.\n";
  return text;
}

}  // namespace scaletrain::launcher
