#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "launcher/commands/commands.h"
#include "launcher/commands/runs/report_data.h"
#include "launcher/commands/runs/report_page.h"
#include "launcher/runs/open_runs.h"
#include "lib/core/disk/disk.h"
#include "lib/core/printable.h"

namespace scaletrain::launcher {
namespace {

struct ReportArguments {
  std::vector<std::string> runs;
  std::string output = "report.html";
};

void write_report(const ReportArguments& arguments) {
  const OpenRuns runs(arguments.runs);
  const std::string page = report_page(report_data(runs.all()));
  const std::filesystem::path file = arguments.output;
  core::Disk& disk = core::system_disk();
  if (file.has_parent_path()) disk.make_folders(file.parent_path());
  core::write_durably(disk, file, page);
  std::fputs(fmt::format("{}\n", core::printable(file.string())).c_str(), stdout);
}

}  // namespace

void add_report_command(CLI::App& app, int& exit_status) {
  const auto arguments = std::make_shared<ReportArguments>();
  CLI::App* const command = app.add_subcommand(
      "report", "Write one self-contained HTML page with curves, results and recipes of runs.");
  command->add_option("RUN", arguments->runs, "Folders of runs, local or s3://...")->required();
  command->add_option("-o,--output", arguments->output,
                      "File of the page. Default: report.html in the working directory.");
  command->callback([arguments, &exit_status] {
    write_report(*arguments);
    exit_status = 0;
  });
}

}  // namespace scaletrain::launcher
