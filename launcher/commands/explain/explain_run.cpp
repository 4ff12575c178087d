#include "launcher/commands/explain/explain_run.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "launcher/runs/open_runs.h"
#include "launcher/runs/run_story.h"
#include "lib/core/text/json_text.h"

namespace scaletrain::launcher {
namespace {

struct StoryArguments {
  std::string run;
  bool as_json = false;
};

}  // namespace

void add_explained_story(CLI::App& explain, int& exit_status) {
  const auto arguments = std::make_shared<StoryArguments>();
  CLI::App* const command =
      explain.add_subcommand("run", "Print the history of a run: starts, failures, restarts, end.");
  command->add_option("RUN", arguments->run, "Folder of the run, local or s3://...")
      ->required()
      ->type_name("RUN");
  command->add_flag("--json", arguments->as_json, "Print one JSON object.");
  command->callback([arguments, &exit_status] {
    const OpenRuns runs({arguments->run});
    const RunRecord& run = runs.all().front();
    const std::string text =
        arguments->as_json ? core::json_text(story_json(run), 1) + "\n" : story_text(run);
    std::fputs(text.c_str(), stdout);
    exit_status = 0;
  });
}

}  // namespace scaletrain::launcher
