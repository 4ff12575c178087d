#include "launcher/commands/shell/man_page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>
#include <vector>

#include "lib/core/text/help_text.h"
#include "lib/core/version.h"

namespace scaletrain::launcher {
namespace {

// Escapes text for roff.
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
  if (flag.takes_value && !flag.is_positional()) {
    text += fmt::format(" \\fI{}\\fR", roff(flag.value));
  }
  text += "\n" + roff(flag.help) + "\n";
  const std::string notes = core::notes_of(flag);
  return notes.empty() ? text : text + roff(notes) + "\n";
}

// Returns a line for the command itself, and one for its subcommands if it also runs without one.
std::string synopsis(const core::Command& command, const std::string& name) {
  std::string words;
  for (const core::Flag& flag : command.flags) {
    if (!flag.is_positional()) continue;
    const std::string word =
        fmt::format("\\fI{}\\fR{}", roff(flag.names[0]), flag.repeatable ? "..." : "");
    words += flag.required ? " " + word : fmt::format(" [{}]", word);
  }
  std::string own = fmt::format("\\fB{}\\fR [\\fIOPTIONS\\fR]{}\n", roff(name), words);
  if (command.commands.empty()) return own;
  std::string below = fmt::format("\\fB{}\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR]\n", roff(name));
  return words.empty() ? below : own + ".br\n" + below;
}

// `heading` starts each group of flags: ".SS " in a page's OPTIONS, "" in a section of a command.
void add_flags(const core::Command& command, const std::string& heading, std::string& text) {
  for (const core::Flag& flag : command.flags) {
    if (flag.is_positional()) text += flag_entry(flag);
  }
  for (const std::string& group : core::groups_of(command)) {
    if (!heading.empty()) text += fmt::format("{}{}\n", heading, roff(group));
    for (const core::Flag& flag : command.flags) {
      if (!flag.is_positional() && flag.group == group) text += flag_entry(flag);
    }
  }
}

void add_commands(const core::Command& command, const std::string& name, std::string& text) {
  for (const core::Command& below : command.commands) {
    const std::string full = name + " " + below.name;
    text += fmt::format(".SS {}\n{}\n.PP\n{}", roff(full), roff(below.help), synopsis(below, full));
    add_flags(below, "", text);
    add_commands(below, full, text);
  }
}

constexpr int kExampleWidth = 66;  // of 80 columns, indented

// The lines of the command's examples, comments as text above them.
std::string examples(const core::Command& command) {
  std::string text;
  std::istringstream lines(command.examples);
  for (std::string line; std::getline(lines, line);) {
    const bool is_comment = line.starts_with("# ");
    std::string wrapped = core::wrapped_example(line, kExampleWidth, 0);
    wrapped.pop_back();
    text += is_comment ? fmt::format(".PP\n{}\n", roff(line.substr(2)))
                       : fmt::format(".PP\n.RS 4\n.nf\n{}\n.fi\n.RE\n", roff(wrapped));
  }
  for (const core::Command& below : command.commands) text += examples(below);
  return text;
}

std::string page_of(std::string name) {
  std::replace(name.begin(), name.end(), ' ', '-');
  return name;
}

constexpr const char* kFiles = R"(.SH FILES
.TP
\fIrecipe.json\fR
A recipe: model, data, optimizer and everything else that a run needs.
.TP
\fIRUN/recipe.json\fR, \fIRUN/metrics.jsonl\fR
The recipe of a run with all defaults, and its metrics.
.TP
\fIRUN/checkpoints/latest\fR, \fIRUN/checkpoints/best\fR
The newest checkpoint of a run and its best one.
.TP
\fIRUN/logs/\fR
The output of every worker.
)";

constexpr const char* kExitStatus = R"(.SH EXIT STATUS
.TP
0
Success.
.TP
1
A program after \-\- failed, a check of doctor or a run of a queue failed, or an internal error.
.TP
2
The command line or the recipe is wrong.
.TP
65
A data set or a checkpoint is missing or damaged.
.TP
71
Out of device memory, host memory, open files or processes.
.TP
74
Storage failed: a full disk, an output that cannot be written, an object store without an answer.
.TP
75
Stopped by a signal, a lost peer, a hang or a timeout; worth a restart.
.TP
76
Training diverged.
.TP
77
Finished with fewer replicas than at the start.
.TP
130
Interrupted by Ctrl\-C, after a checkpoint.
.TP
128+n
A rank was ended by signal n.
)";

// The pages of the command above, of the commands below it, and of the program.
std::string see_also(const core::Command& command, const std::string& name) {
  std::vector<std::string> pages;
  const std::size_t program = name.find(' ');
  if (program == std::string::npos) {
    for (const core::Command& below : command.commands) {
      pages.push_back(page_of(name + " " + below.name));
    }
  } else {
    pages.push_back(name.substr(0, program));
    if (name.rfind(' ') != program) {
      pages.push_back(page_of(name.substr(0, name.find(' ', program + 1))));
    }
  }
  std::string text = ".SH SEE ALSO\n";
  for (std::size_t i = 0; i < pages.size(); ++i) {
    text += fmt::format("\\fB{}\\fR(1){}\n", roff(pages[i]), i + 1 < pages.size() ? "," : "");
  }
  return text;
}

}  // namespace

std::string man_page(const core::Command& command, const std::string& name) {
  const std::string page = page_of(name);
  std::string text = fmt::format(".TH {} 1 \"\" \"scaletrain {}\" \"scaletrain\"\n",
                                 roff(upper(page)), core::version());
  std::string title = command.help;
  if (title.ends_with('.')) title.pop_back();
  text += fmt::format(".SH NAME\n{} \\- {}\n", roff(page), roff(title));
  text += ".SH SYNOPSIS\n" + synopsis(command, name);
  if (!command.flags.empty()) {
    text += ".SH OPTIONS\n";
    add_flags(command, ".SS ", text);
  }
  if (!command.commands.empty()) {
    text += ".SH COMMANDS\n";
    add_commands(command, name, text);
  }
  const std::string shown = examples(command);
  if (!shown.empty()) text += ".SH EXAMPLES\n" + shown;
  return text + kFiles + kExitStatus + see_also(command, name);
}

}  // namespace scaletrain::launcher
