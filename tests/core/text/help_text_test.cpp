#include "lib/core/text/help_text.h"

#include <doctest/doctest.h>

#include <CLI/CLI.hpp>
#include <cstdlib>

namespace scaletrain::core {
namespace {

Command small_command() {
  Command command{.name = "run",
                  .help = "Runs a recipe on several devices.",
                  .examples = "# On two devices.\ntool run --count 2 recipe.json",
                  .flags = {{.names = {"-h", "--help"}, .help = "Print this help."},
                            {.names = {"-c", "--count"},
                             .help = "Number of devices.",
                             .variable = "TOOL_COUNT",
                             .takes_value = true,
                             .group = "Devices",
                             .value = "INT",
                             .default_value = "1",
                             .limits = "from 1 to 9"},
                            {.names = {"RECIPE"},
                             .help = "The recipe.",
                             .takes_value = true,
                             .required = true,
                             .repeatable = true}},
                  .commands = {}};
  command.commands.push_back(
      {.name = "status", .help = "Shows it.", .examples = "", .flags = {}, .commands = {}});
  return command;
}

TEST_CASE("the help has the usage, the arguments, the commands, the groups and the examples") {
  CHECK(help_text(small_command(), "tool run", 80) ==
        "Runs a recipe on several devices.\n\n"
        "Usage: tool run [OPTIONS] RECIPE... [COMMAND]\n\n"
        "Arguments:\n"
        "  RECIPE                  The recipe.\n\n"
        "Commands:\n"
        "  status                  Shows it.\n\n"
        "Devices:\n"
        "  -c, --count INT         Number of devices. Allowed: from 1 to 9. Default: 1.\n"
        "                          Environment: TOOL_COUNT.\n\n"
        "Options:\n"
        "  -h, --help              Print this help.\n\n"
        "Examples:\n"
        "  # On two devices.\n"
        "  tool run --count 2 recipe.json\n");
}

TEST_CASE("lines are wrapped to the width, examples with a backslash") {
  const std::string text = help_text(small_command(), "tool run", 40);
  CHECK(text.find("  -c, --count INT\n             Number of devices. Allowed:\n") !=
        std::string::npos);
  Command longer = small_command();
  longer.examples = "tool run --count 2 --other-flag value recipe.json";
  CHECK(help_text(longer, "tool run", 40)
            .ends_with("  tool run --count 2 --other-flag \\\n"
                       "      value recipe.json\n"));
  CHECK(wrapped_example("# Runs on as many devices as there are.", 24, 2) ==
        "  # Runs on as many\n  # devices as there\n  # are.\n");
}

TEST_CASE("the width is that of COLUMNS, at least 40") {
  const char* const before = std::getenv("COLUMNS");
  const std::string kept = before == nullptr ? "" : before;
  setenv("COLUMNS", "100", 1);
  CHECK(help_width() == 100);
  setenv("COLUMNS", "7", 1);
  CHECK(help_width() == 40);
  if (before == nullptr) {
    unsetenv("COLUMNS");
  } else {
    setenv("COLUMNS", kept.c_str(), 1);
  }
}

TEST_CASE("flags stand under the heading of their group, commands have their own examples") {
  CLI::App app("Tool.", "tool");
  use_help_text(app);
  CLI::App* const run = app.add_subcommand("run", "Runs.");
  run->add_subcommand("status", "Shows it.");
  {
    const FlagGroup group(*run, "Devices");
    run->add_flag("--fast")->description("Be quick.");
  }
  run->add_flag("--slow")->description("Be slow.");
  set_command_texts(app, {{"", nullptr, "tool run"}, {"run", "Train", "tool run --fast"}});
  const Command table = table_of(app);
  CHECK(groups_of(table.commands[0]) == std::vector<std::string>{"Devices", "Options"});
  CHECK(table.commands[0].find_flag("--slow")->group == "Options");
  CHECK(table.commands[0].group == "Train");
  CHECK(table.commands[0].examples == "tool run --fast");
  CHECK(table.commands[0].commands[0].examples.empty());
  CHECK(app.help().find("Examples:\n  tool run\n") != std::string::npos);
  CHECK_THROWS(set_command_texts(app, {{"walk", nullptr, ""}}));
}

}  // namespace
}  // namespace scaletrain::core
