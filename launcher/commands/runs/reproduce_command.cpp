// `reproduce RUN`: starts a finished run again, says beforehand what differs from its surroundings,
// and compares both runs bit for bit.
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "launcher/commands/commands.h"
#include "launcher/commands/launch_command.h"
#include "launcher/commands/prove/run_comparison.h"
#include "launcher/commands/runs/run_differences.h"
#include "launcher/flags/launch_options.h"
#include "launcher/jobs/data_files.h"
#include "launcher/platform/git_changes.h"
#include "launcher/runs/run_record.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/printable.h"
#include "lib/core/text/hash.h"
#include "lib/core/text/json_text.h"
#include "lib/core/text/table.h"
#include "lib/core/version.h"
#include "lib/format/checkpoint/checkpoint_folder.h"
#include "lib/observe/environment.h"
#include "lib/recipe/load.h"

namespace scaletrain::launcher {
namespace {

namespace fs = std::filesystem;

struct ReproduceArguments {
  std::string run, output, worker;
  bool only_check = false, json = false;
};

void refuse_unfit(const RunRecord& run) {
  if (run.state.state != "finished") {
    throw core::UsageError(run.shown, fmt::format("the run is {}, not finished", run.state.state),
                           "reproduce a finished run; `scaletrain resume` continues one");
  }
  for (const RunJson& event : run.journal) {
    if (event.value("nodes", 1) <= 1) continue;
    throw core::UsageError(
        run.shown, fmt::format("the run was on {} nodes", event.value("nodes", 1)),
        "launch its recipe.json there with --set output=FOLDER, then `scaletrain compare`");
  }
}

std::string recorded_sha256(const RunRecord& run, const DataFile& file) {
  const auto card = run.cards.find(file.set);
  if (card == run.cards.end() || !card->second.is_object()) return "";
  for (const RunJson& shard : card->second.value("shards", RunJson::array())) {
    if (string_of(shard, "name") == fs::path(file.path).filename()) {
      return string_of(shard, "sha256");
    }
  }
  return "";
}

std::vector<RunDifference> git_differences(const RunRecord& run, const RunJson& provenance) {
  const fs::path folder = string_of(run.environment, "working_directory");
  const std::atomic<bool> never{false};
  const std::string commit = observe::git_commit(folder);
  const std::string changes = git_changes(folder, never);
  const RunJson now{{"git_commit", commit.empty() ? RunJson() : RunJson(commit)},
                    {"changes_sha256",
                     changes.empty() ? RunJson() : RunJson(core::Sha256().update(changes).hex())}};
  std::vector<RunDifference> result = environment_differences(run.environment, now, {"git_commit"});
  for (RunDifference& one : environment_differences(provenance, now, {"changes_sha256"})) {
    one.name = "uncommitted changes (SHA-256 of git diff)";
    result.push_back(std::move(one));
  }
  return result;
}

std::vector<RunDifference> variable_differences(const RunJson& then, const RunJson& now) {
  std::vector<RunDifference> result;
  const auto recorded = computing_variables(then);
  for (const auto& [name, value] : computing_variables(now)) {
    const bool was_set = std::any_of(recorded.begin(), recorded.end(),
                                     [&name = name](const auto& one) { return one.first == name; });
    if (!was_set) result.push_back({.name = "variable " + name, .then = "-", .now = value});
  }
  return result;
}

std::vector<RunDifference> differences_before(const RunRecord& run) {
  const recipe::Recipe recipe = recipe::load_recipe(run.folder / "recipe.json", {});
  const RunJson provenance = read_object(run.folder / "provenance.json");
  const RunJson now =
      RunJson::parse(observe::environment_json({.versions = {{"scaletrain", core::version()}},
                                                .devices = {},
                                                .world_size = 1,
                                                .command = {}}));
  std::vector<RunDifference> result = environment_differences(
      run.environment, now, {"versions/scaletrain", "host", "kernel", "cpu", "cores"});
  const auto append = [&result](std::vector<RunDifference> more) {
    for (RunDifference& one : more) result.push_back(std::move(one));
  };
  append(git_differences(run, provenance));
  append(variable_differences(run.environment, now));
  if (!provenance.is_object()) {
    core::warn("{}: provenance.json is missing: the data is not compared", run.shown);
    return result;
  }
  const std::atomic<bool> never{false};
  append(data_differences(
      data_files_of(provenance.value("data", RunJson::array())),
      *data_files(recipe.data, recipe.model.weights ? recipe.model.weights->path : "", never),
      [&run](const DataFile& file) { return recorded_sha256(run, file); }));
  return result;
}

RunJson differences_json(const std::vector<RunDifference>& differences) {
  RunJson list = RunJson::array();
  for (const RunDifference& one : differences) {
    list.push_back(
        {{"name", one.name}, {"then", one.then}, {"now", one.now}, {"certain", one.is_certain}});
  }
  return list;
}

void show(const RunRecord& run, const std::vector<RunDifference>& differences) {
  if (differences.empty()) {
    core::log("{}: data, program, host and repository are as they were", run.shown);
    return;
  }
  std::vector<std::vector<std::string>> rows{{"differs", "then", "now"}};
  for (const RunDifference& one : differences) {
    rows.push_back({core::printable(one.name + (one.is_certain ? "" : " (perhaps)")),
                    core::printable(one.then), core::printable(one.now)});
  }
  std::fputs(core::text_table(rows).c_str(), stdout);
  std::fflush(stdout);
}

ProvenRun proven(const RunRecord& run) {
  return proven_run(run, format::model_digest(format::checkpoint_at(run.folder)));
}

int train_again(const RunRecord& run, const ReproduceArguments& arguments) {
  constexpr int kReplace = 1;
  for (const auto& [name, value] : computing_variables(run.environment)) {
    ::setenv(name.c_str(), value.c_str(), kReplace);
  }
  LaunchOptions options;
  options.nproc = std::to_string(run.environment.value("world_size", 1));
  options.path = (run.folder / "recipe.json").string();
  options.set = {"output=" + arguments.output};
  options.worker = arguments.worker;
  return launch_recipe(options, false);
}

std::string verdict_text(const RunVerdict& verdict, const ProvenRun& first) {
  if (!verdict.parting) {
    return fmt::format("equal: {}, digest {}",
                       core::counted(static_cast<std::int64_t>(first.steps.size()), "logged step"),
                       first.model_digest);
  }
  const Parting& parting = *verdict.parting;
  return fmt::format("not equal: step {}, {} {} and {}", parting.step, parting.field, parting.first,
                     parting.second);
}

int run_reproduce(ReproduceArguments arguments) {
  const RunRecord run = read_run(arguments.run, arguments.run);
  refuse_unfit(run);
  if (arguments.output.empty()) {
    arguments.output = (run.folder / "").parent_path().string() + "-reproduced";
  }
  std::error_code ignored;
  if (!arguments.only_check && fs::exists(arguments.output, ignored)) {
    throw core::UsageError("--output", core::printable(arguments.output) + " exists already",
                           "name another folder, or remove it");
  }
  std::vector<RunDifference> differences = differences_before(run);
  RunJson json{{"run", arguments.run}, {"differences", differences_json(differences)}};
  if (!arguments.json) show(run, differences);
  const auto finish = [&](int status) {
    if (arguments.json) std::fputs((core::json_text(json, 2) + "\n").c_str(), stdout);
    return status;
  };
  if (arguments.only_check) {
    const bool differs = std::any_of(differences.begin(), differences.end(),
                                     [](const RunDifference& one) { return one.is_certain; });
    return finish(differs ? 1 : 0);
  }
  if (const int status = train_again(run, arguments); status != 0) return status;
  const RunRecord again = read_run(arguments.output, arguments.output);
  for (RunDifference& one :
       environment_differences(run.environment, again.environment, {"versions/torch", "devices"})) {
    core::warn("{}: {} then, {} now", one.name, one.then, one.now);
    differences.push_back(std::move(one));
  }
  const ProvenRun first = proven(run), second = proven(again);
  const RunVerdict verdict = compare_runs(first, second, 0);
  json["differences"] = differences_json(differences);
  json["output"] = arguments.output;
  json["equal"] = !verdict.parting;
  json["digests"] = {first.model_digest, second.model_digest};
  if (verdict.parting) {
    json["parting"] = {{"step", verdict.parting->step},
                       {"field", verdict.parting->field},
                       {"first", verdict.parting->first},
                       {"second", verdict.parting->second}};
  }
  if (!arguments.json) std::fputs((verdict_text(verdict, first) + "\n").c_str(), stdout);
  return finish(verdict.parting ? 1 : 0);
}

}  // namespace

void add_reproduce_command(CLI::App& app, int& exit_status) {
  const auto arguments = std::make_shared<ReproduceArguments>();
  CLI::App* const command = app.add_subcommand(
      "reproduce",
      "Train a finished run again on this machine, list what differs beforehand, and compare both "
      "runs bit for bit.");
  command->add_option("RUN", arguments->run, "Folder of a finished run on one node.")->required();
  command->add_option("--output", arguments->output,
                      "New folder for the second run. Default: RUN-reproduced.");
  command->add_flag("--check", arguments->only_check,
                    "Only list the differences; exit code 1 if there is one.");
  command->add_option("--worker", arguments->worker,
                      "Path of a worker program of your own, with its models.");
  command->add_flag("--json", arguments->json, "Print one JSON object instead of text.");
  command->callback([arguments, &exit_status] { exit_status = run_reproduce(*arguments); });
}

}  // namespace scaletrain::launcher
