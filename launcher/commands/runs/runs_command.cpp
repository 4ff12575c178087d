#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "launcher/commands/commands.h"
#include "launcher/runs/fit_table.h"
#include "launcher/runs/recipe_keys.h"
#include "launcher/runs/run_results.h"
#include "lib/core/error.h"
#include "lib/core/printable.h"
#include "lib/core/text/json_text.h"
#include "lib/core/text/table.h"

namespace scaletrain::launcher {
namespace {

namespace fs = std::filesystem;

constexpr int kMostLevels = 6;  // of folders that are searched

struct RunsArguments {
  std::string folder = "runs", sort;
  std::vector<std::string> conditions;
  bool reverse = false, as_json = false;
};

struct ListedRun {
  RunRecord run;
  std::vector<RunValue> results;
  double started = 0;
};

// Runs below `folder`; a run's own folders are not searched.
void find_runs(const fs::path& folder, int levels, std::vector<fs::path>& found) {
  if (is_run(folder)) {
    found.push_back(folder);
    return;
  }
  std::error_code unreadable;
  std::vector<fs::path> below;
  for (const auto& entry : fs::directory_iterator(folder, unreadable)) {
    if (entry.is_directory(unreadable) && !entry.is_symlink(unreadable)) {
      below.push_back(entry.path());
    }
  }
  std::sort(below.begin(), below.end());
  if (levels <= 0) return;
  for (const fs::path& one : below) find_runs(one, levels - 1, found);
}

std::vector<ListedRun> list_runs(const RunsArguments& arguments) {
  std::error_code absent;
  if (!fs::is_directory(arguments.folder, absent)) {
    throw core::UsageError(arguments.folder, "is not a folder", "name a folder that holds runs");
  }
  std::vector<KeyCondition> conditions;
  for (const std::string& text : arguments.conditions) conditions.emplace_back(text);
  std::vector<fs::path> folders;
  find_runs(arguments.folder, kMostLevels, folders);
  std::vector<ListedRun> runs;
  for (const fs::path& folder : folders) {
    RunRecord run = read_run(folder, folder.string());
    const auto keys = flat_keys(run.recipe);
    if (!std::all_of(conditions.begin(), conditions.end(),
                     [&keys](const KeyCondition& one) { return one.holds(keys); })) {
      continue;
    }
    std::vector<RunValue> results = run_results(run);
    const double started = start_time(run).value_or(0);
    runs.push_back({.run = std::move(run), .results = std::move(results), .started = started});
  }
  return runs;
}

// The best run first; runs without the measure last.
void sort_by_measure(std::vector<ListedRun>& runs, const std::string& name) {
  std::set<std::string> known;
  for (const ListedRun& one : runs) {
    for (const RunValue& value : one.results) known.insert(value.name);
  }
  if (!runs.empty() && !known.contains(name)) {
    known.insert({"name", "started"});
    throw core::UsageError("--sort", fmt::format("no run has \"{}\"", name),
                           fmt::format("use one of: {}", fmt::join(known, ", ")));
  }
  std::stable_sort(runs.begin(), runs.end(), [&name](const ListedRun& a, const ListedRun& b) {
    const RunValue* const left = find_value(a.results, name);
    const RunValue* const right = find_value(b.results, name);
    if (left == nullptr || right == nullptr) return left != nullptr && right == nullptr;
    return left->higher_is_better ? left->value > right->value : left->value < right->value;
  });
}

void sort_runs(std::vector<ListedRun>& runs, const RunsArguments& arguments) {
  if (arguments.sort.empty() || arguments.sort == "started") {
    std::stable_sort(runs.begin(), runs.end(),
                     [](const ListedRun& a, const ListedRun& b) { return a.started > b.started; });
  } else if (arguments.sort == "name") {
    std::stable_sort(runs.begin(), runs.end(), [](const ListedRun& a, const ListedRun& b) {
      return a.run.name < b.run.name;
    });
  } else {
    sort_by_measure(runs, arguments.sort);
  }
  if (arguments.reverse) std::reverse(runs.begin(), runs.end());
}

RunJson runs_json(const std::vector<ListedRun>& runs) {
  RunJson list = RunJson::array();
  for (const ListedRun& one : runs) {
    RunJson results = RunJson::object();
    for (const RunValue& value : one.results) results[value.name] = value.value;
    list.push_back({{"path", one.run.shown},
                    {"name", one.run.name},
                    {"state", one.run.state.state},
                    {"why", one.run.state.why},
                    {"started", one.started > 0 ? RunJson(one.started) : RunJson()},
                    {"results", results}});
  }
  return list;
}

// Headings that a narrow terminal leaves out, the first ones first: not the measure of --sort, and
// the first validation measure last.
std::vector<std::string> removable(const std::vector<std::string>& headings,
                                   const std::string& sorted_by) {
  std::vector<std::string> measures,
      others{"TFLOP/s", "MFU", "samples/s", "time", "loss", "started", "step"};
  for (const std::string& heading : headings) {
    if (heading.starts_with("val ")) measures.insert(measures.begin(), heading);
  }
  if (measures.empty()) measures.emplace_back();
  others.insert(others.begin(), measures.begin(), measures.end() - 1);
  others.push_back(measures.back());
  std::erase(others, value_label(sorted_by));
  return others;
}

// A column for each validation measure, then the common ones.
std::string runs_text(const std::vector<ListedRun>& runs, const std::string& sorted_by) {
  std::vector<std::pair<std::string, std::string>> columns;
  for (const ListedRun& one : runs) {
    for (const RunValue& value : one.results) {
      const std::pair<std::string, std::string> column{value.name, value.label};
      if (!value.name.starts_with("val_")) continue;
      if (std::find(columns.begin(), columns.end(), column) == columns.end()) {
        columns.push_back(column);
      }
    }
  }
  columns.insert(columns.end(),
                 {{"loss", "loss"}, {"step", "step"}, {"samples_per_s", "samples/s"}});
  for (const auto& [name, label] :
       {std::pair("tflops_per_s", "TFLOP/s"), std::pair("mfu", "MFU")}) {
    if (std::any_of(runs.begin(), runs.end(), [name = name](const ListedRun& one) {
          return find_value(one.results, name) != nullptr;
        })) {
      columns.emplace_back(name, label);
    }
  }
  columns.emplace_back("seconds", "time");
  std::vector<std::vector<std::string>> table{{"run", "state"}};
  for (const auto& [name, label] : columns) table[0].push_back(label);
  table[0].insert(table[0].end(), {"started", ""});
  for (const ListedRun& one : runs) {
    std::vector<std::string> line{core::printable(one.run.shown), one.run.state.state};
    for (const auto& [name, label] : columns) {
      const RunValue* const value = find_value(one.results, name);
      line.push_back(value == nullptr ? "-" : value_text(name, value->value));
    }
    const bool is_bad = one.run.state.state == "failed" || one.run.state.state == "dead";
    line.push_back(local_time(one.started));
    line.push_back(is_bad ? core::printable(one.run.state.why) : "");
    table.push_back(std::move(line));
  }
  const auto left_out = fit_table(table, removable(table[0], sorted_by), output_columns());
  std::string text = core::text_table(table);
  if (!left_out.empty()) {
    text += fmt::format("left out on this narrow terminal: {}\n", fmt::join(left_out, ", "));
  }
  return text;
}

}  // namespace

void add_runs_command(CLI::App& app, int& exit_status) {
  const auto arguments = std::make_shared<RunsArguments>();
  CLI::App* const command =
      app.add_subcommand("runs", "List the runs below a folder with their results.");
  command->add_option("FOLDER", arguments->folder, "Folder to search. Default: runs.");
  command->add_option("--sort", arguments->sort,
                      "Measure to sort by, best first, for example val_top1 or loss. Default: "
                      "started, newest first.");
  command->add_flag("--reverse", arguments->reverse, "Reverse the order.");
  command->add_option("--where", arguments->conditions,
                      "Condition on a recipe key, for example optimizer.name=adamw or "
                      "optimizer.lr>=0.01. Repeatable.");
  command->add_flag("--json", arguments->as_json, "Print a JSON list.");
  command->callback([arguments, &exit_status] {
    std::vector<ListedRun> runs = list_runs(*arguments);
    sort_runs(runs, *arguments);
    const std::string text = arguments->as_json ? core::json_text(runs_json(runs), 1) + "\n"
                                                : runs_text(runs, arguments->sort);
    std::fputs(text.c_str(), stdout);
    exit_status = 0;
  });
}

}  // namespace scaletrain::launcher
