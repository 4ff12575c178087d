#include "lib/core/command_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <sstream>

#include "lib/core/command_table.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/lookup.h"

namespace scaletrain::core {
namespace {

std::string did_you_mean(const std::string& name, const std::vector<std::string>& known) {
  const std::string near = nearest(name, known);
  return near.empty() ? "" : fmt::format("; did you mean \"{}\"?", near);
}

// "--flag=" as "--flag" and "": CLI11 would take the next word for its value.
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

[[noreturn]] void refuse_extras(const CLI::App& app) {
  const auto [command, place] = chosen_of(app);
  const std::string extra = app.remaining(true).front();
  const std::string flag = extra.substr(0, extra.find('='));
  if (!flag.starts_with("-")) {
    throw UsageError(place, fmt::format("\"{}\" is one argument too many", flag),
                     fmt::format("{} --help lists what is allowed", place));
  }
  std::vector<std::string> known;
  for (const CLI::Option* option : command->get_options()) {
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  }
  throw UsageError(place, fmt::format("there is no flag {}", flag),
                   fmt::format("{} --help lists the flags{}", place, did_you_mean(flag, known)));
}

// Room for all that a command prints: of what does not fit, an earlier write would have forgotten
// why it failed.
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

void refuse_command(const CLI::App& app, const std::string& name) {
  const std::vector<std::string> known = command_names(app);
  throw UsageError(
      app.get_name(), fmt::format("there is no command \"{}\"", escape_control(name)),
      fmt::format("use one of: {}{}", fmt::join(known, ", "), did_you_mean(name, known)));
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

bool parse_command_line(CLI::App& app, std::vector<std::string> arguments) {
  hold_output_back();
  if (arguments == std::vector<std::string>{"--command-table"}) {
    std::fputs(to_json(table_of(app)).c_str(), stdout);
    flush_output();
    return false;
  }
  try {
    split_empty_values(arguments);
    std::reverse(arguments.begin(), arguments.end());  // as CLI11 takes them
    app.parse(arguments);
  } catch (const CLI::ExtrasError&) {
    refuse_extras(app);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) {
      const ChosenCommand chosen = chosen_of(app);
      throw UsageError(chosen.words, error.what(),
                       fmt::format("{}{} --help lists the flags", chosen.words,
                                   chosen.command == &app ? " COMMAND" : ""));
    }
    std::ostringstream text;  // --help, --version
    app.exit(error, text, text);
    std::fputs(text.str().c_str(), stdout);
    flush_output();
    return false;
  }
  return true;
}

}  // namespace scaletrain::core
