#include "lib/core/text/command_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <sstream>

#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/printable.h"
#include "lib/core/text/command_table.h"
#include "lib/core/text/home.h"
#include "lib/core/text/lookup.h"
#include "lib/core/text/other_words.h"

namespace scaletrain::core {
namespace {

std::string did_you_mean(const std::string& name, const std::vector<std::string>& known) {
  const std::string near = nearest(name, known);
  return near.empty() ? "" : fmt::format("; did you mean \"{}\"?", near);
}

// Relative paths need a working directory.
void check_working_directory() {
  std::error_code error;
  static_cast<void>(std::filesystem::current_path(error));
  if (!error) return;
  throw UsageError("the working directory", fmt::format("is gone: {}", error.message()),
                   "change to a folder that exists");
}

// Expands "~" in a word and in --flag=~, which a shell does not expand.
void expand_homes(std::vector<std::string>& arguments) {
  for (std::string& word : arguments) {
    const std::size_t value = word.starts_with("--") ? word.find('=') + 1 : 0;
    const std::string path = word.substr(value);
    if (const std::string fault = home_fault(path); !fault.empty()) {
      throw UsageError(printable(word), fault, kHomeRemedy);
    }
    word = word.substr(0, value) + expand_home(path);
  }
}

// Splits "--flag=" into "--flag" and "": CLI11 would take the next word as the value.
void split_empty_values(std::vector<std::string>& words) {
  for (std::size_t i = 0; i < words.size() && words[i] != "--"; ++i) {
    std::string& word = words[i];
    if (!word.starts_with("--") || word.find('=') != word.size() - 1) continue;
    word.pop_back();
    words.insert(words.begin() + static_cast<std::ptrdiff_t>(++i), "");
  }
}

struct ChosenCommand {
  const CLI::App* command;
  std::string words;  // "scaletrain data check"
};

ChosenCommand chosen_of(const CLI::App& app) {
  ChosenCommand result{&app, app.get_name()};
  for (auto next = app.get_subcommands(); !next.empty(); next = result.command->get_subcommands()) {
    result.command = next.front();
    result.words += " " + result.command->get_name();
  }
  return result;
}

std::vector<std::string> flags_of(const CLI::App& command) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
  }
  return flags;
}

// Returns "; here it is --nproc" if the command has that flag.
std::string here_it_is(const CLI::App& command, const std::string& place, const std::string& flag) {
  const std::string ours = our_word(place, flag);
  const std::vector<std::string> known = flags_of(command);
  const std::string first = ours.substr(0, ours.find(' '));
  const bool is_flag = first.starts_with("-");
  if (ours.empty() || (is_flag && std::find(known.begin(), known.end(), first) == known.end())) {
    return "";
  }
  return fmt::format("; here it is {}", ours);
}

[[noreturn]] void refuse_extras(const CLI::App& app, const WordHint& hint) {
  const auto [command, place] = chosen_of(app);
  const std::string extra = app.remaining(true).front();
  const std::string flag = extra.substr(0, extra.find('='));
  const std::string more = hint ? hint(place, extra) : "";
  if (!flag.starts_with("-")) {
    throw UsageError(place, fmt::format("\"{}\" is one argument too many", flag),
                     more.empty() ? fmt::format("{} --help lists what is allowed", place) : more);
  }
  const std::string here = here_it_is(*command, place, flag);
  std::string remedy = more;
  if (!here.empty() || more.empty()) {
    remedy = fmt::format("{} --help lists the flags{}", place,
                         here.empty() ? did_you_mean(flag, flags_of(*command)) : here);
  }
  throw UsageError(place, fmt::format("there is no flag {}", flag), remedy);
}

[[noreturn]] void refuse_command_of(const CLI::App& app, const std::string& place,
                                    const std::string& name,
                                    const std::vector<std::string>& others) {
  std::vector<std::string> known = command_names(app);
  known.insert(known.end(), others.begin(), others.end());
  const std::string ours = our_word(place, name);
  throw UsageError(
      place, fmt::format("there is no command \"{}\"", printable(name)),
      fmt::format("use one of: {}{}", fmt::join(known, ", "),
                  ours.empty() ? did_you_mean(name, known) : fmt::format("; here it is {}", ours)));
}

// Refuses a command that needs a subcommand and has none.
void refuse_missing_command(const CLI::App& app) {
  const auto [command, place] = chosen_of(app);
  const std::vector<std::string> known = command_names(*command);
  if (known.empty()) return;
  const std::vector<std::string> rest = app.remaining(true);
  if (!rest.empty() && !rest.front().starts_with("-")) {
    refuse_command_of(*command, place, rest.front(), {});
  }
  if (command->get_require_subcommand_min() == 0) return;
  throw UsageError(place, "a command is missing",
                   fmt::format("use one of: {}", fmt::join(known, ", ")));
}

[[noreturn]] void refuse_parse(const CLI::App& app, const CLI::ParseError& error) {
  const ChosenCommand chosen = chosen_of(app);
  throw UsageError(chosen.words, error.what(),
                   fmt::format("{}{} --help lists the flags", chosen.words,
                               chosen.command == &app ? " COMMAND" : ""));
}

// Gives stdout a buffer for all output of a command: with several writes, the reason why an early
// one failed would be lost.
void hold_output_back() {
  static std::array<char, 1 << 20> buffer;
  [[maybe_unused]] static const int once =
      std::setvbuf(stdout, buffer.data(), _IOFBF, buffer.size());
}

}  // namespace

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> result;
  for (const CLI::App* command : app.get_subcommands({})) result.push_back(command->get_name());
  return result;
}

void refuse_command(const CLI::App& app, const std::string& name,
                    const std::vector<std::string>& others) {
  refuse_command_of(app, app.get_name(), name, others);
}

void flush_output() {
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return;
  const int error = errno;
  pollfd reader{.fd = STDOUT_FILENO, .events = POLLOUT, .revents = 0};
  const bool gone = poll(&reader, 1, 0) > 0 && (reader.revents & POLLERR) != 0;
  if (error == EPIPE || gone) return;
  throw StorageError("standard output",
                     error == 0 ? "did not take all that was printed" : errno_text(error));
}

bool parse_command_line(CLI::App& app, std::vector<std::string> arguments, const WordHint& hint) {
  hold_output_back();
  if (arguments == std::vector<std::string>{"--command-table"}) {
    std::fputs(to_json(table_of(app)).c_str(), stdout);
    flush_output();
    return false;
  }
  check_working_directory();
  try {
    split_empty_values(arguments);
    expand_homes(arguments);
    std::reverse(arguments.begin(), arguments.end());  // CLI11 takes them in reverse order
    app.parse(arguments);
  } catch (const CLI::ExtrasError&) {
    refuse_extras(app, hint);
  } catch (const CLI::RequiredError& error) {
    refuse_missing_command(app);
    refuse_parse(app, error);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) refuse_parse(app, error);
    std::ostringstream text;  // --help, --version
    app.exit(error, text, text);
    std::fputs(text.str().c_str(), stdout);
    flush_output();
    return false;
  }
  return true;
}

}  // namespace scaletrain::core
