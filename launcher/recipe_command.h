// `scaletrain recipe check|show|schema|reference`: what a recipe says, before anything runs.
#pragma once

namespace CLI {  // NOLINT(readability-identifier-naming)
class App;
}

namespace scaletrain::launcher {

// Adds the command `recipe` with its subcommands to `app`. Their callbacks run inside app.parse():
// they print to standard output and set `exit_status`, or throw core::Error (a wrong recipe, a
// missing shard) for the caller of parse() to print.
void add_recipe_commands(CLI::App& app, int& exit_status);

}  // namespace scaletrain::launcher
