#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "launcher/commands/commands.h"
#include "launcher/commands/runs/comparison.h"
#include "launcher/runs/fit_table.h"
#include "launcher/runs/open_runs.h"
#include "lib/core/text/json_text.h"

namespace scaletrain::launcher {
namespace {

struct CompareArguments {
  std::vector<std::string> runs;
  bool all = false, as_json = false;
};

}  // namespace

void add_compare_command(CLI::App& app, int& exit_status) {
  const auto arguments = std::make_shared<CompareArguments>();
  CLI::App* const command =
      app.add_subcommand("compare", "Show differences of runs in recipe, code, data and results.");
  command->add_option("RUN", arguments->runs, "Folders of two or more runs, local or s3://...")
      ->required()
      ->expected(2, 1000);
  command->add_flag("--all", arguments->all, "Show rows in which the runs are equal too.");
  command->add_flag("--json", arguments->as_json, "Print one JSON object with every row.");
  command->callback([arguments, &exit_status] {
    const OpenRuns runs(arguments->runs);
    const RunJson comparison = compare_runs(runs.all());
    const std::string text = arguments->as_json
                                 ? core::json_text(comparison, 1) + "\n"
                                 : comparison_text(comparison, arguments->all, output_columns());
    std::fputs(text.c_str(), stdout);
    exit_status = 0;
  });
}

}  // namespace scaletrain::launcher
