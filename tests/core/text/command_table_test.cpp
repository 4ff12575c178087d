#include "lib/core/text/command_table.h"

#include <doctest/doctest.h>

#include <CLI/CLI.hpp>

#include "lib/core/error.h"

namespace scaletrain::core {
namespace {

TEST_CASE("a table says what the tree of commands takes, and is read back from its JSON") {
  CLI::App app("all of it", "tool");
  std::string text;
  CLI::App* const run = app.add_subcommand("run", "runs");
  run->add_option("-r,--red-dirs,--red_dirs", text, "where")->envname("TOOL_RED");
  run->add_flag("--fast")->description("quickly");
  run->add_option("FILE", text, "what");
  run->footer("that is all");
  for (const Command& table : {table_of(app), parse_command_table(to_json(table_of(app)))}) {
    CHECK(table.name == "tool");
    const Command* const found = table.find("run");
    REQUIRE(found != nullptr);
    CHECK(found->help == "Runs.");
    CHECK(found->examples == "that is all");
    const Flag* const red = found->find_flag("--red-dirs");
    REQUIRE(red != nullptr);
    CHECK(red->names == std::vector<std::string>{"-r", "--red-dirs"});
    CHECK(red->variable == "TOOL_RED");
    CHECK(red->takes_value);
    CHECK(found->find_flag("-r") == red);
    CHECK_FALSE(found->find_flag("--fast")->takes_value);
    CHECK(found->find_flag("FILE")->is_positional());
    CHECK(table.find("walk") == nullptr);
    CHECK(found->find_flag("--slow") == nullptr);
  }
}

TEST_CASE("a flag has its heading, default and allowed values; its help text is a sentence") {
  CLI::App app("all of it", "tool");
  int count = 5;
  std::string kind;
  std::vector<std::string> paths;
  CLI::Option* const fast = app.add_flag("--fast")->description("be quick");
  app.add_option("--count", count, "--fast counts too")
      ->check(CLI::Range(1, 9))
      ->capture_default_str()
      ->excludes(fast)
      ->group("Numbers");
  app.add_option("--kind", kind, "Kind of it.")->check(CLI::IsMember({"a", "b"}))->required();
  app.add_option("PATH", paths, "paths");
  app.add_subcommand("run", "runs")->group("Work");
  app.require_subcommand(1);
  for (const Command& table : {table_of(app), parse_command_table(to_json(table_of(app)))}) {
    CHECK(table.needs_command);
    CHECK(table.commands[0].group == "Work");
    const Flag& numbers = *table.find_flag("--count");
    CHECK(numbers.help == "--fast counts too.");
    CHECK(numbers.group == "Numbers");
    CHECK(numbers.value == "INT");
    CHECK(numbers.default_value == "5");
    CHECK(numbers.limits == "from 1 to 9");
    CHECK(numbers.allowed.empty());
    CHECK(numbers.excludes == std::vector<std::string>{"--fast"});
    const Flag& kinds = *table.find_flag("--kind");
    CHECK(kinds.help == "Kind of it.");
    CHECK(kinds.allowed == std::vector<std::string>{"a", "b"});
    CHECK(kinds.limits.empty());
    CHECK(kinds.required);
    CHECK(table.find_flag("PATH")->repeatable);
    CHECK(table.find_flag("--fast")->help == "Be quick.");
  }
}

TEST_CASE("what is no table is refused") {
  CHECK_THROWS_AS(parse_command_table(""), UsageError);
  CHECK_THROWS_AS(parse_command_table("{}"), UsageError);
}

}  // namespace
}  // namespace scaletrain::core
