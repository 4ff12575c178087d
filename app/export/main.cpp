// scaletrain-export: follows metrics, pictures and histograms of a run and writes them for
// experiment trackers.
//
// The launcher of node 0 starts it, if the recipe has log.to, and ends it by closing the pipe that
// is its standard input. Standard output is a file that the launcher reads: a line for each warning
// and, at the end, the summary. Standard error is RUN/logs/export.log.
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <exception>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/printable.h"
#include "lib/core/text/command_line.h"
#include "lib/core/text/help_text.h"
#include "lib/observe/line_follower.h"
#include "lib/track/exports.h"
#include "lib/track/media.h"
#include "lib/track/record.h"

namespace {

namespace core = scaletrain::core;
namespace track = scaletrain::track;
using scaletrain::observe::LineFollower;

constexpr int kLookMs = 500;
constexpr int kLowPriority = 10;  // nice value: training comes first
constexpr std::size_t kBatch = 1024;

struct Arguments {
  track::ExportOptions options;
  std::vector<std::string> to;
};

// Writes one line to the launcher and to the log.
void report(const std::string& text) {
  core::log_line(text);
  const std::string line = core::printable_lines(text) + "\n";
  [[maybe_unused]] const ssize_t written = write(STDOUT_FILENO, line.data(), line.size());
}

// The files of a run that are exported.
struct RunFiles {
  explicit RunFiles(std::filesystem::path folder) : run(std::move(folder)) {}

  std::filesystem::path run;
  LineFollower metrics{run / "metrics.jsonl"};
  LineFollower pictures{run / "media" / "index.jsonl"}, histograms{run / "histograms.jsonl"};
};

void export_new_metrics(RunFiles& files, track::Exports& exports) {
  std::vector<track::Record> records;
  const auto flush = [&] {
    if (!records.empty()) exports.write(records);
    records.clear();
  };
  const auto begin_again = [&] {
    exports.begin_again();
    files.pictures = LineFollower(files.run / "media" / "index.jsonl");
    files.histograms = LineFollower(files.run / "histograms.jsonl");
  };
  files.metrics.read(begin_again, [&](const nlohmann::ordered_json& line) {
    if (std::optional<track::Record> record = track::parse_record(line)) {
      records.push_back(std::move(*record));
    }
    if (records.size() == kBatch) flush();
  });
  flush();
}

// Exports the lines that were appended since the last call.
void export_new_lines(RunFiles& files, track::Exports& exports) {
  export_new_metrics(files, exports);
  const auto nothing = [] {};
  files.pictures.read(nothing, [&](const nlohmann::ordered_json& line) {
    if (const auto picture = track::parse_picture(line)) exports.write_picture(*picture);
  });
  files.histograms.read(nothing, [&](const nlohmann::ordered_json& line) {
    if (const auto histograms = track::parse_histograms(line)) {
      exports.write_histograms(*histograms);
    }
  });
}

// Serves sockets until it is time to look at the file again; false: the launcher closed its pipe.
bool wait_and_serve(track::Exports& exports) {
  std::vector<pollfd> watched{{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0}};
  for (const int fd : exports.sockets())
    watched.push_back({.fd = fd, .events = POLLIN, .revents = 0});
  if (poll(watched.data(), watched.size(), kLookMs) <= 0) return true;
  for (std::size_t i = 1; i < watched.size(); ++i) {
    if (watched[i].revents != 0) exports.serve(i - 1);
  }
  return watched[0].revents == 0;
}

int follow(const Arguments& arguments) {
  track::Exports exports(arguments.to, arguments.options,
                         [](const std::string& line) { report("warning: " + line); });
  RunFiles files(arguments.options.run);
  while (wait_and_serve(exports)) export_new_lines(files, exports);
  export_new_lines(files, exports);
  exports.finish();
  report(exports.summary());
  return 0;
}

int run(const std::vector<std::string>& command_line) {
  Arguments arguments;
  std::string folder, textfile_folder;
  CLI::App app("Export the metrics of a run to experiment trackers, until standard input ends.",
               "scaletrain-export");
  core::use_help_text(app);
  app.add_option("--run", folder, "Run folder.")->required();
  app.add_option("--name", arguments.options.name, "Run name.")->required();
  app.add_option("--to", arguments.to, "Tracker: tensorboard, csv, prometheus or wandb.")
      ->required();
  app.add_option("--port", arguments.options.port, "Port for Prometheus on 127.0.0.1. 0: none.");
  app.add_option("--textfile-folder", textfile_folder, "Folder for Prometheus textfiles.");
  if (!core::parse_command_line(app, command_line)) return 0;
  arguments.options.run = folder;
  arguments.options.textfile_folder = textfile_folder;
  return follow(arguments);
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // a write beyond `ulimit -f` fails with EFBIG and is reported
  setpriority(PRIO_PROCESS, 0, kLowPriority);
  try {
    return run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    core::log_line(core::describe(error));
    return static_cast<int>(core::exit_code_of(error));
  }
}
