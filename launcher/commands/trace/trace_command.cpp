// `trace merge` and `trace top`: merge and analyse the traces of a run.
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "launcher/commands/commands.h"
#include "lib/core/error.h"
#include "lib/core/printable.h"
#include "lib/core/text/json_text.h"
#include "lib/observe/trace/merge_traces.h"
#include "lib/observe/trace/read_trace.h"
#include "lib/observe/trace/trace_top.h"

namespace scaletrain::launcher {
namespace {

namespace fs = std::filesystem;

struct TraceArguments {
  std::vector<std::string> paths;
  std::string output;
  int most = 10;
  bool as_json = false;
};

// Returns the trace files; a folder means the newest traces of its run.
std::vector<fs::path> trace_files(const TraceArguments& arguments) {
  std::vector<fs::path> files;
  for (const std::string& path : arguments.paths) {
    std::error_code unknown;
    if (!fs::is_directory(path, unknown)) {
      files.emplace_back(path);
      continue;
    }
    const std::vector<fs::path> found = observe::newest_traces(path);
    if (found.empty()) {
      throw core::UsageError(path, "has no trace",
                             fmt::format("make one with scaletrain profile {}", path));
    }
    files.insert(files.end(), found.begin(), found.end());
  }
  return files;
}

void merge_files(const TraceArguments& arguments) {
  const std::vector<fs::path> files = trace_files(arguments);
  const std::string partial = arguments.output + ".partial";  // no reader sees half a file
  std::ofstream to(partial, std::ios::binary);
  std::error_code error;
  try {
    observe::merge_traces(files, to);
  } catch (...) {
    fs::remove(partial, error);
    throw;
  }
  to.close();
  if (to.good()) fs::rename(partial, arguments.output, error);
  if (!to.good() || error) {
    throw core::StorageError(arguments.output, "cannot be written",
                             "name a file in a folder that exists and has space");
  }
  std::printf("%s: %zu %s\n", core::printable(arguments.output).c_str(), files.size(),
              files.size() == 1 ? "rank" : "ranks");
}

void print_top(const TraceArguments& arguments) {
  observe::TraceTop top = observe::analyse_traces(trace_files(arguments));
  top.costs = observe::largest_costs(top.costs, arguments.most);
  const std::string text = arguments.as_json ? core::json_text(observe::top_json(top), 1) + "\n"
                                             : observe::top_text(top);
  std::fputs(text.c_str(), stdout);
}

CLI::App* add_trace(CLI::App& trace, const char* name, const char* help,
                    const std::shared_ptr<TraceArguments>& arguments) {
  CLI::App* const command = trace.add_subcommand(name, help);
  command
      ->add_option("RUN", arguments->paths,
                   "Run folder, which stands for its newest traces, or trace files.")
      ->required()
      ->type_name("RUN");
  return command;
}

}  // namespace

void add_trace_commands(CLI::App& app, int& exit_status) {
  const auto arguments = std::make_shared<TraceArguments>();
  CLI::App* const trace = app.add_subcommand(
      "trace", "Merge profiler traces of several ranks, or list the largest costs");
  trace->require_subcommand(1);
  CLI::App* const merging =
      add_trace(*trace, "merge", "Put the traces of all ranks into one file", arguments);
  merging
      ->add_option("-o,--output", arguments->output,
                   "File to write. It opens in ui.perfetto.dev, each rank as a process.")
      ->required()
      ->type_name("FILE");
  merging->callback([arguments, &exit_status] {
    merge_files(*arguments);
    exit_status = 0;
  });
  CLI::App* const top = add_trace(*trace, "top",
                                  "List the operations, kernels and spans that cost most, with "
                                  "time, overlap and idle time of each rank",
                                  arguments);
  top->add_option("--most", arguments->most, "Number of rows of each kind. Default: 10.")
      ->check(CLI::PositiveNumber)
      ->type_name("N");
  top->add_flag("--json", arguments->as_json, "Print one JSON object instead of text.");
  top->callback([arguments, &exit_status] {
    print_top(*arguments);
    exit_status = 0;
  });
}

}  // namespace scaletrain::launcher
