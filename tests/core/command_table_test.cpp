#include "lib/core/command_table.h"

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
    CHECK(found->help == "runs");
    CHECK(found->footer == "that is all");
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

TEST_CASE("what is no table is refused") {
  CHECK_THROWS_AS(parse_command_table(""), UsageError);
  CHECK_THROWS_AS(parse_command_table("{}"), UsageError);
}

}  // namespace
}  // namespace scaletrain::core
