#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/mman.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launcher/commands/commands.h"
#include "launcher/commands/shell/candidates.h"
#include "launcher/commands/shell/commands_page.h"
#include "launcher/commands/shell/man_page.h"
#include "launcher/commands/shell/scripts.h"
#include "launcher/platform/become.h"
#include "launcher/platform/captured.h"
#include "lib/core/disk/disk.h"
#include "lib/core/error.h"
#include "lib/core/process/programs.h"
#include "lib/core/text/command_table.h"

namespace scaletrain::launcher {
namespace {

constexpr std::chrono::seconds kTablePatience{10};

// Returns the commands of `app` and of scaletrain-data, if that is installed beside this program.
core::Command whole_table(const CLI::App& app) {
  core::Command table = core::table_of(app);
  try {
    const Captured asked =
        run_captured({.arguments = {core::program_beside_us("scaletrain-data"), "--command-table"},
                      .variables = {}},
                     kTablePatience);
    core::Command data = core::parse_command_table(asked.output);
    data.name = "data";
    table.commands.push_back(std::move(data));
  } catch (const core::Error&) {  // built without it
  }
  return table;
}

void print_candidates(const CLI::App& app, const std::vector<std::string>& words) {
  const bool needs_data = words.size() <= 1 || words[0] == "data" || words[0] == "help";
  const core::Command table = needs_data ? whole_table(app) : core::table_of(app);
  for (const CompletionWord& candidate : candidates(table, words)) {
    fmt::print("{}\t{}\n", candidate.word, candidate.help);
  }
}

void write_pages(const core::Command& command, const std::string& name,
                 const std::filesystem::path& folder) {
  std::string file = name;
  std::replace(file.begin(), file.end(), ' ', '-');
  core::write_durably(core::system_disk(), folder / (file + ".1"), man_page(command, name));
}

// Shows a page with man(1) if standard output is a terminal and man is installed; returns
// otherwise.
void show_on_terminal(const std::string& page) {
  if (isatty(STDOUT_FILENO) == 0) return;
  const std::optional<std::string> man = core::find_program("man");
  const int file = memfd_create("page", 0);
  if (!man || file < 0) return;
  // In memory: a file would be left when man ends.
  const auto bytes = static_cast<ssize_t>(page.size());
  if (write(file, page.data(), page.size()) != bytes || lseek(file, 0, SEEK_SET) != 0 ||
      dup2(file, STDIN_FILENO) < 0) {
    return;
  }
  become(*man, {"-l", "-"});
}

void print_page(const core::Command& table, const std::vector<std::string>& words) {
  const core::Command* command = &table;
  std::string name = table.name;
  for (const std::string& word : words) {
    command = command->find(word);
    if (command == nullptr) {
      throw core::UsageError("man", fmt::format("there is no command \"{}\"", word),
                             "scaletrain --help lists the commands");
    }
    name += " " + word;
  }
  const std::string page = man_page(*command, name);
  show_on_terminal(page);
  std::fputs(page.c_str(), stdout);
}

struct ShellOptions {
  std::string shell;
  std::vector<std::string> words;
  std::string folder;
  bool markdown = false;
};

}  // namespace

void add_shell_commands(CLI::App& app, int& exit_status) {
  const auto options = std::make_shared<ShellOptions>();
  CLI::App* const completion =
      app.add_subcommand("completion", "Print the completion script of a shell");
  completion->add_option("SHELL", options->shell, "bash, zsh or fish")->required();
  completion->add_option("WORD", options->words,
                         "Words of a command line, for the scripts themselves.");
  completion->callback([&app, options, &exit_status] {
    if (options->shell == "candidates") {
      print_candidates(app, options->words);
    } else {
      std::fputs(completion_script(options->shell).c_str(), stdout);
    }
    exit_status = 0;
  });

  CLI::App* const man = app.add_subcommand("man", "Show a page of the manual, or write all pages");
  man->add_option("COMMAND", options->words, "Command, for example recipe check. Default: all.");
  man->add_option("--write", options->folder, "Folder for a page of each command.");
  man->callback([&app, options, &exit_status] {
    const core::Command table = whole_table(app);
    if (options->folder.empty()) {
      print_page(table, options->words);
    } else {
      core::system_disk().make_folders(options->folder);
      write_pages(table, table.name, options->folder);
      for (const core::Command& command : table.commands) {
        write_pages(command, table.name + " " + command.name, options->folder);
      }
    }
    exit_status = 0;
  });

  CLI::App* const help =
      app.add_subcommand("help", "Show the help of a command: scaletrain help launch");
  // With the name of a command, the program reads `help COMMAND` as `COMMAND --help`.
  help->add_flag("--markdown", options->markdown, "Print the reference of all commands.");
  help->callback([&app, &exit_status] {
    std::fputs(commands_page(whole_table(app)).c_str(), stdout);
    exit_status = 0;
  });
}

}  // namespace scaletrain::launcher
